import type { Gryphus } from '../../index.ts';
import { getopt, Refused } from './options.ts';
import { byCluster, FINISHED, isFinished, isOf, pbsName, UNKNOWN_JOB } from './pbs-jobs.ts';
import type { SlurmJob } from './slurm-job.ts';

/** What the command does, and the options that it has. */
const ACTIONS = {
  qdel: { action: 'remove', spec: '-x -W= -p' },
  qhold: { action: 'hold', spec: '-h=' },
  qrls: { action: 'release', spec: '-h=' },
} as const;

export type PbsAction = keyof typeof ACTIONS;

/** Acts as PBS' qdel, qhold and qrls do; the exit status. */
export async function pbsAct(
  gryphus: Gryphus,
  command: PbsAction,
  words: readonly string[],
  warn: (text: string) => void,
): Promise<number> {
  const { action, spec } = ACTIONS[command];
  const { values, words: ids } = getopt(spec, words);
  if (ids.length === 0) throw new Refused(`usage: ${command} job_identifier...`, 2);
  const kinds = values.get('h') ?? 'u';
  if (kinds !== 'u') throw new Refused(`-h ${kinds} is not supported; a user's hold (u) is`, 159);
  const names = ids.map(pbsName);
  const jobs = await byCluster(gryphus, names, 'everywhere');
  const chosen: { cluster: number; proc: number }[] = [];
  const whole = new Set<number>();
  let status = 0;
  for (const name of names) {
    const own = (jobs.get(name.cluster) ?? []).filter((job) => isOf(name, job));
    const live = own.filter((job) => !isFinished(job));
    // A job that failed may be held: PBS would have forgotten it.
    if (action === 'remove') chosen.push(...own.filter((job) => isFinished(job) && job.held).map(idOf));
    if (live.length > 0) {
      // So that no more jobs of an array are made.
      if (name.tasks === 'whole') whole.add(name.cluster);
      else chosen.push(...live.map(idOf));
    } else if (own.length === 0) {
      warn(`${command}: Unknown Job Id ${name.text}\n`);
      status = UNKNOWN_JOB;
    } else if (!values.has('x')) {
      warn(`${command}: Job has finished${command === 'qdel' ? ` ${name.text}` : ''}\n`);
      status = FINISHED;
    }
  }
  const single = chosen.filter(({ cluster }) => !whole.has(cluster));
  if (whole.size > 0) await gryphus.act(action, { clusters: [...whole], reason: command });
  if (single.length > 0) await gryphus.act(action, { ids: single, reason: command });
  return status;
}

function idOf({ cluster, proc }: SlurmJob): { readonly cluster: number; readonly proc: number } {
  return { cluster, proc };
}
