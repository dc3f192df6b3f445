import type { AttrTexts } from '../job/attrs.ts';
import { GryphusError } from '../errors.ts';
import { formatJobId, type JobId } from '../job/ids.ts';
import { LIFE, type State } from '../job/life.ts';
import type { Change, ChangeResult, Lease } from './api.ts';
import { encodeJson, isMade, priorityOf, stateNamed } from './record.ts';
import { textsOf } from './answers.ts';
import type { QueueContext } from './context.ts';

/** Changes in one exchange: a running script blocks all other clients. */
const AT_ONCE = 2000;

/** Makes each change independently, in order. One exchange is one script, and so one write to disk. */
export async function transitionMany(
  context: QueueContext,
  changes: readonly Change[],
  lease?: Lease,
): Promise<readonly ChangeResult[]> {
  const named = new Set<string>();
  for (const { route: to, at } of changes) {
    if (to) named.add(to.manager).add(to.site);
    if (at) named.add(at.manager).add(at.site);
  }
  const numbers = await context.names.numbers([...named]);
  const results: ChangeResult[] = [];
  for (let from = 0; from < changes.length; from += AT_ONCE) {
    const some = changes.slice(from, from + AT_ONCE);
    const answers = textsOf(
      await context.db.script('change', [
        context.now(),
        lease?.name ?? '',
        lease?.epoch ?? '',
        encodeChanges(some, numbers),
      ]),
    );
    let next = 0;
    for (let i = 0; i + 1 < answers.length; i += 2) {
      const answer = answers[i + 1] ?? '';
      const granted = grantedIn(answer);
      for (let n = Number(answers[i]); n > 0; n--, next++) {
        const change = some[next];
        if (change) results.push(granted ?? refusalOf(change, answer));
      }
    }
  }
  return results;
}

export async function editCluster(context: QueueContext, cluster: number, set: AttrTexts): Promise<boolean> {
  const per = Object.keys(set).find((name) => isMade(name) || name.toLowerCase() === 'jobprio');
  if (per !== undefined) {
    throw new GryphusError('bad-input', `${per} is each job's own: it cannot be edited for a cluster.`);
  }
  return (await context.db.script('edit-cluster', [cluster, context.now(), encodeJson(set)])) === 1;
}

export function route(ids: readonly JobId[], to: { readonly manager: string; readonly site: string }): Change[] {
  return ids.map((id) => ({ id, route: to, from: ['idle', 'held'] }));
}

/** Neighbours that differ only in their procs are encoded, and computed, as one. */
function encodeChanges(changes: readonly Change[], numbers: ReadonlyMap<string, string>): string {
  const wishes: string[] = [];
  let head: string | undefined;
  let procs: number[] = [];
  const close = () => {
    if (head !== undefined) wishes.push(`{${head},"p":["${procs.join('","')}"]}`);
  };
  for (const change of changes) {
    const own = encodeChange(change, numbers);
    if (own !== head) {
      close();
      [head, procs] = [own, []];
    }
    procs.push(change.id.proc);
  }
  close();
  return `[${wishes.join(',')}]`;
}

function encodeChange(change: Change, numbers: ReadonlyMap<string, string>): string {
  const { id, event, from, at, set, route: to, info, attempt, candidate, adopt, attemptsFrom } = change;
  const states = from === undefined ? undefined : typeof from === 'string' ? [from] : from;
  const fields = [
    `"i":"${id.cluster}"`,
    event === undefined ? '' : `"e":${JSON.stringify(event)}`,
    states === undefined ? '' : `"f":${JSON.stringify(Object.fromEntries(states.map((state) => [state, true])))}`,
    at === undefined ? '' : `"w":["${numbers.get(at.manager)}","${numbers.get(at.site)}"]`,
    set === undefined ? '' : `"s":${encodeJson(settable(set))}`,
    info === undefined ? '' : `"n":${JSON.stringify(encodeJson(info))}`,
    attempt === undefined ? '' : `"a":"${attempt}"`,
    candidate === undefined ? '' : `"b":"${candidate}"`,
    adopt === undefined ? '' : `"d":"${adopt}"`,
    attemptsFrom === undefined ? '' : `"u":"${attemptsFrom}"`,
    to === undefined ? '' : `"r":["${numbers.get(to.manager)}","${numbers.get(to.site)}"]`,
  ];
  return fields.filter((field) => field !== '').join(',');
}

/** Attributes that the queue derives cannot be set; a priority becomes a 32-bit integer. */
function settable(set: AttrTexts): AttrTexts {
  for (const name in set) {
    if (isMade(name)) {
      throw new GryphusError('bad-input', `${name} follows from the job's state: it cannot be set.`);
    }
    if (name.toLowerCase() === 'jobprio') return { ...set, [name]: String(priorityOf(set[name] ?? '0')) };
  }
  return set;
}

function grantedIn(answer: string): ChangeResult | undefined {
  const [what, where, attempt] = answer.split('|');
  const state = stateNamed(where);
  return what === 'ok' && state !== undefined ? { ok: true, state, attempt: Number(attempt) } : undefined;
}

function refusalOf(change: Change, answer: string): ChangeResult {
  const [what = '', where] = answer.split('|');
  const state = stateNamed(where);
  const job = `Job ${formatJobId(change.id)}`;
  switch (what) {
    case 'no-such-job':
      return { ok: false, why: what, message: `${job} is not in the queue.` };
    case 'stale-epoch':
      return { ok: false, why: what, message: `${job} is now handled by another process.` };
    case 'wrong-attempt':
      return { ok: false, why: what, ...(state && { state }), message: `${job} is in another attempt now.` };
    case 'wrong-state':
      return {
        ok: false,
        why: what,
        ...(state && { state }),
        message: `${job} is ${shown(state)}: ${wish(change)} does not apply.`,
      };
    default:
      throw new Error(`The queue answered ${JSON.stringify(answer)} to a change of ${job}.`);
  }
}

function shown(state: State | undefined): string {
  return state === undefined
    ? 'in an unknown state'
    : state === LIFE[state].shows
      ? state
      : `${LIFE[state].shows} (${state})`;
}

function wish({ event, route: to }: Change): string {
  return event === undefined ? (to ? 'another site' : 'the edit') : `'${event}'`;
}
