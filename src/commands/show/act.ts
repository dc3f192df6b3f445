import type { Action, ActionResult, Selection } from '../../index.ts';
import { formatJobId } from '../../job/ids.ts';
import { counted } from '../../util/plain-text.ts';

/** Actions on jobs. */
export type JobOrder = Action | 'move' | 'vacate' | 'suspend' | 'continue' | 'checkpoint';

export const WORDS: Readonly<Record<JobOrder, string>> = {
  hold: 'held',
  release: 'released',
  remove: 'marked for removal',
  move: 'moved',
  vacate: 'vacated',
  suspend: 'suspended',
  continue: 'continued',
  checkpoint: 'asked to checkpoint',
};

/** What `condor_hold`, `condor_release` and `condor_rm` print about one argument. */
export interface Said {
  readonly ok: boolean;
  /** For stdout on success, otherwise for stderr. */
  readonly line: string;
}

/**
 * A line for each job named by its id. For any other selection, one line in HTCondor's words, followed by the number of
 * jobs so that its extent is clear.
 */
export function actionLines(order: JobOrder, target: Selection, results: readonly ActionResult[]): Said[] {
  if (target.ids) {
    const byId = new Map(results.map((one) => [formatJobId(one.id), one]));
    const missing =
      target.constraint === undefined ? 'not found' : `not found${whichOf({ constraint: target.constraint })}`;
    return target.ids.map((id) => {
      const name = formatJobId(id);
      const result = byId.get(name);
      if (result?.result === 'done') return { ok: true, line: `Job ${name} ${result.message}` };
      return { ok: false, line: `Job ${name} ${result && result.result !== 'not-found' ? result.message : missing}` };
    });
  }
  const done = results.filter((one) => one.result === 'done');
  const which = whichOf(target);
  const others = countText(results.filter((one) => one.result !== 'done'));
  if (done.length === 0) {
    return [{ ok: false, line: `Couldn't find/${order} all jobs${which}${others === '' ? '' : ` (${others})`}` }];
  }
  const what = [...new Set(done.map(({ message }) => message))];
  const [only = ''] = what;
  const some = what.length === 1 ? counted(done.length, 'job') : countText(done);
  return [
    {
      ok: true,
      line: `All jobs${which} have been ${what.length === 1 ? only : WORDS[order]} (${some}${others === '' ? '' : `; ${others}`})`,
    },
  ];
}

/** For example `3 already held, 1 not possible now: the job is running`. */
function countText(results: readonly ActionResult[]): string {
  const counts = new Map<string, number>();
  for (const { message } of results) counts.set(message, (counts.get(message) ?? 0) + 1);
  return [...counts].map(([message, n]) => `${n} ${message}`).join(', ');
}

/** Which jobs, in HTCondor's words: ` in cluster 12`; empty for all jobs. */
export function whichOf({ clusters, owner, constraint }: Selection): string {
  const named =
    clusters?.[0] !== undefined ? ` in cluster ${clusters[0]}` : owner === undefined ? '' : ` of user "${owner}"`;
  return constraint === undefined ? named : `${named} matching constraint (${constraint})`;
}
