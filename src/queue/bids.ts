import { BID_STATES, type BidState } from '../job/bid-life.ts';
import { formatJobId, type JobId } from '../job/ids.ts';
import type { Bid, BidPlace, Bids, BidStep, BidStepResult, JobBids, Lease } from './api.ts';
import { answersOf } from './read.ts';
import { encodeJson } from './record.ts';
import type { Room } from './room.ts';

/** Steps in one exchange: a script holds up everybody else while it runs. */
const AT_ONCE = 1000;

/** As the scripts keep the bids of one job (lua/prelude.lua). */
interface Kept {
  readonly open: Readonly<
    Record<string, { readonly s: string; readonly m: string; readonly w: string; readonly t: string; n?: string }>
  >;
  readonly refused: Readonly<Record<string, string>>;
}

export function openBids(room: Room): Bids {
  return {
    step: (steps, lease) => stepAll(room, steps, lease),
    next: (place) => nextBids(room, place),
    of: (ids) => bidsOf(room, ids),
    places: () => places(room),
  };
}

async function stepAll(room: Room, steps: readonly BidStep[], lease?: Lease): Promise<readonly BidStepResult[]> {
  const numbers = await room.names.numbers(steps.flatMap((s) => (s.event === 'opened' ? [s.manager, s.site] : [])));
  const results: BidStepResult[] = [];
  for (let from = 0; from < steps.length; from += AT_ONCE) {
    const some = steps.slice(from, from + AT_ONCE);
    const wishes = some.map((step) =>
      step.event === 'opened'
        ? { ...idOf(step), e: 'opened', m: numbers.get(step.manager), w: numbers.get(step.site) }
        : { ...idOf(step), e: step.event, a: String(step.attempt), n: step.words },
    );
    const answers = (await room.db.script('bid', [
      room.now(),
      lease?.name ?? '',
      lease?.epoch ?? '',
      `[${wishes.map(encodeJson).join(',')}]`,
    ])) as string[];
    for (const [i, step] of some.entries()) results.push(decodeAnswer(step, answers[i] ?? ''));
  }
  return results;
}

function idOf({ id }: { readonly id: JobId }): { readonly i: string; readonly p: string } {
  return { i: String(id.cluster), p: String(id.proc) };
}

function decodeAnswer(step: BidStep, answer: string): BidStepResult {
  const [what, state, attempt] = answer.split('|');
  if (what === 'ok')
    return { ok: true, state: state === 'gone' ? 'gone' : (stateNamed(state) ?? 'gone'), attempt: Number(attempt) };
  if (what === 'stale-epoch' || what === 'no-such-bid' || what === 'no-such-job' || what === 'wrong-state') {
    return { ok: false, why: what };
  }
  throw new Error(`The queue answered ${JSON.stringify(answer)} to a bid of job ${formatJobId(step.id)}.`);
}

async function nextBids(
  room: Room,
  place: { readonly manager: string; readonly site: string; readonly state: BidState; readonly limit?: number },
): Promise<Bid[]> {
  const { manager, site, state } = place;
  const numbers = await room.names.numbers([manager, site]);
  const found = (await room.db.script('next-bids', [
    numbers.get(manager) ?? '0',
    numbers.get(site) ?? '0',
    state,
    place.limit ?? -1,
  ])) as string[];
  const bids: Bid[] = [];
  for (let at = 0; at + 4 < found.length; at += 5) {
    const [cluster, proc, attempt, since, words = ''] = found.slice(at, at + 5);
    const id = { cluster: Number(cluster), proc: Number(proc) };
    bids.push({ id, attempt: Number(attempt), manager, site, state, since: Number(since), words });
  }
  return bids;
}

async function bidsOf(room: Room, ids: readonly JobId[]): Promise<JobBids[]> {
  if (ids.length === 0) return [];
  const texts = await room.db.run(async (redis) => {
    const pipeline = redis.pipeline();
    for (const { cluster, proc } of ids) pipeline.hget(`${room.db.prefix}b:${cluster}`, String(proc));
    return answersOf<string | null>(await pipeline.exec());
  });
  const kept = texts.map((text) => (text === null ? undefined : (JSON.parse(text) as Kept)));
  const names = await room.names.names(
    kept.flatMap((one) => [
      ...Object.values(one?.open ?? {}).flatMap(({ m, w }) => [m, w]),
      ...Object.keys(one?.refused ?? {}),
    ]),
  );
  return ids.map((id, i) => ({
    id,
    open: Object.entries(kept[i]?.open ?? {}).flatMap(([attempt, { s, m, w, t, n }]): Bid[] => {
      const state = stateNamed(s);
      if (state === undefined) return [];
      const [manager, site] = [names.get(m) ?? '', names.get(w) ?? ''];
      return [{ id, attempt: Number(attempt), manager, site, state, since: Number(t), words: n ?? '' }];
    }),
    refused: Object.entries(kept[i]?.refused ?? {}).map(([site, words]) => ({ site: names.get(site) ?? '', words })),
  }));
}

async function places(room: Room): Promise<BidPlace[]> {
  const counts = Object.entries(await room.db.run((redis) => redis.hgetall(`${room.db.prefix}bids`)));
  const names = await room.names.names(counts.flatMap(([place]) => place.split(':', 2)));
  return counts.flatMap(([place, count]) => {
    const [manager = '0', site = '0', name] = place.split(':');
    const state = stateNamed(name);
    if (state === undefined) return [];
    return [{ manager: names.get(manager) ?? '', site: names.get(site) ?? '', state, bids: Number(count) }];
  });
}

function stateNamed(name: string | undefined): BidState | undefined {
  return BID_STATES.find((state) => state === name);
}
