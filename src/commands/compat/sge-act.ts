import type { Gryphus } from '../../index.ts';
import { Refused } from './options.ts';
import { isNamedSo, lettersOf, sgeJobs, sgeName } from './sge-jobs.ts';
import { sgeOptions } from './sge-options.ts';
import type { SlurmJob } from './slurm-job.ts';
import { ownUser } from '../../util/own-user.ts';

const ACTIONS = { qdel: 'remove', qhold: 'hold', qrls: 'release' } as const;

export type SgeAction = keyof typeof ACTIONS;

/** Acts as Grid Engine's qdel, qhold and qrls do; the exit status. */
export async function sgeAct(
  gryphus: Gryphus,
  command: SgeAction,
  words: readonly string[],
  write: (text: string) => void,
): Promise<number> {
  const { values, words: rest } = sgeOptions('-u= -t= -f -h=', words);
  const users = values.get('-u')?.split(',');
  const names = rest.flatMap((word) => word.split(',')).map((word) => sgeName(word, values.get('-t')));
  if (names.length === 0 && users === undefined) throw new Refused(`usage: ${command} [options] job_task_list`);
  const jobs = (await sgeJobs(gryphus, names.length === 0 ? undefined : names, 'queue')).filter(
    (job) => users === undefined || users.includes('*') || users.includes(job.user),
  );
  const live = jobs.filter((job) => lettersOf(job) !== undefined);
  // A job that failed may be held: Grid Engine would have forgotten it.
  const chosen = command === 'qdel' ? jobs : live;
  let status = 0;
  for (const name of names) {
    if (live.some((job) => isNamedSo(name, job))) continue;
    status = command === 'qdel' ? 1 : 3;
    write(
      name.kind === 'number'
        ? `denied: job "${name.text}" does not exist\n`
        : `The job ${name.text} of user(s) ${users?.join(',') ?? ownUser().username} does not exist\n`,
    );
  }
  // Whole arrays by their number, so that no more of their jobs are made.
  const clusters = [
    ...new Set(names.flatMap((one) => (one.kind === 'number' && one.tasks === undefined ? [one.cluster] : []))),
  ].filter((cluster) => users === undefined && live.some((job) => job.cluster === cluster));
  const ids = chosen
    .filter(({ cluster }) => !clusters.includes(cluster))
    .map(({ cluster, proc }) => ({ cluster, proc }));
  if (clusters.length > 0) await gryphus.act(ACTIONS[command], { clusters, reason: command });
  if (ids.length > 0) await gryphus.act(ACTIONS[command], { ids, reason: command });
  for (const line of new Set(live.map((job) => done(command, job, clusters.includes(job.cluster))))) write(`${line}\n`);
  return status;
}

/** `whole`: the array is named, not its tasks; those that wait are then one line. */
function done(command: SgeAction, job: SlurmJob, whole: boolean): string {
  const me = ownUser().username;
  const what =
    job.task === undefined || (whole && job.state === 'PENDING')
      ? `job ${job.cluster}`
      : `job-array task ${job.cluster}.${job.task}`;
  if (command !== 'qdel') return `modified hold of ${what}`;
  return job.state === 'PENDING' ? `${me} has deleted ${what}` : `${me} has registered the ${what} for deletion`;
}
