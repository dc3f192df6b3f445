import type { Action, ActionResult, Selection } from '../../index.ts';
import { formatJobId } from '../../job/ids.ts';

const WORDS: Readonly<Record<Action, { readonly verb: string; readonly done: string }>> = {
  hold: { verb: 'hold', done: 'held' },
  release: { verb: 'release', done: 'released' },
  remove: { verb: 'remove', done: 'marked for removal' },
};

/** What `condor_hold`, `condor_release` and `condor_rm` say of one of their arguments. */
export interface Said {
  readonly ok: boolean;
  /** For stdout where it went well, else for stderr. */
  readonly line: string;
}

export function actionLines(action: Action, target: Selection, results: readonly ActionResult[]): Said[] {
  const { verb, done: usual } = WORDS[action];
  const ids = target.ids ?? [];
  if (ids.length > 0) {
    const byId = new Map(results.map((one) => [formatJobId(one.id), one]));
    return ids.map((id) => {
      const name = formatJobId(id);
      const result = byId.get(name);
      if (result?.result === 'done') return { ok: true, line: `Job ${name} ${result.words}` };
      return { ok: false, line: `Job ${name} ${result && result.result !== 'not-found' ? result.words : 'not found'}` };
    });
  }
  const ok = results.some((one) => one.result === 'done');
  const whole = describe(target);
  const done = commonWords(results) ?? usual;
  return [
    ok ? { ok, line: `All jobs${whole} have been ${done}` } : { ok, line: `Couldn't find/${verb} all jobs${whole}` },
  ];
}

function commonWords(results: readonly ActionResult[]): string | undefined {
  const words = new Set(results.flatMap((one) => (one.result === 'done' ? [one.words] : [])));
  return words.size === 1 ? [...words][0] : undefined;
}

function describe(target: Selection): string {
  const cluster = target.clusters?.[0];
  if (cluster !== undefined) return ` in cluster ${cluster}`;
  if (target.constraint !== undefined) return ` matching constraint (${target.constraint})`;
  return target.owner === undefined ? '' : ` of user "${target.owner}"`;
}
