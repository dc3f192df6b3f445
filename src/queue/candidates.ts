import * as z from 'zod';
import { CANDIDATE_STATES, type CandidateState } from '../job/candidate-life.ts';
import { formatJobId, type JobId } from '../job/ids.ts';
import type {
  Candidate,
  CandidatePlace,
  Candidates,
  CandidateStep,
  CandidateStepResult,
  JobCandidates,
  Lease,
} from './api.ts';
import { parseStored } from '../util/stored-json.ts';
import { answersOf, TEXT_OR_NONE, textsOf } from './answers.ts';
import { QUEUE_REMEDY } from './record.ts';
import { encodeJson } from './record.ts';
import type { QueueContext } from './context.ts';

/** Steps in one exchange: a running script blocks all other clients. */
const AT_ONCE = 1000;

/** The stored form of one job's candidates (lua/prelude.lua). */
const KEPT = z.object({
  open: z.record(
    z.string(),
    z.object({ s: z.string(), m: z.string(), w: z.string(), t: z.coerce.string(), n: z.exactOptional(z.string()) }),
  ),
  refused: z.record(z.string(), z.string()),
});

const CANDIDATES_PLACE = { what: "The queue's record of a job's candidates", remedy: QUEUE_REMEDY };

export function openCandidates(context: QueueContext): Candidates {
  return {
    step: (steps, lease) => stepAll(context, steps, lease),
    next: (place) => nextCandidates(context, place),
    of: (ids) => candidatesOf(context, ids),
    places: () => places(context),
  };
}

async function stepAll(
  context: QueueContext,
  steps: readonly CandidateStep[],
  lease?: Lease,
): Promise<readonly CandidateStepResult[]> {
  const numbers = await context.names.numbers(steps.flatMap((s) => (s.event === 'opened' ? [s.manager, s.site] : [])));
  const results: CandidateStepResult[] = [];
  for (let from = 0; from < steps.length; from += AT_ONCE) {
    const some = steps.slice(from, from + AT_ONCE);
    const wishes = some.map((step) =>
      step.event === 'opened'
        ? { ...idOf(step), e: 'opened', m: numbers.get(step.manager), w: numbers.get(step.site) }
        : { ...idOf(step), e: step.event, a: String(step.attempt), n: step.message },
    );
    const answers = textsOf(
      await context.db.script('candidate', [
        context.now(),
        lease?.name ?? '',
        lease?.epoch ?? '',
        `[${wishes.map(encodeJson).join(',')}]`,
      ]),
    );
    for (const [i, step] of some.entries()) results.push(decodeAnswer(step, answers[i] ?? ''));
  }
  return results;
}

function idOf({ id }: { readonly id: JobId }): { readonly i: string; readonly p: string } {
  return { i: String(id.cluster), p: String(id.proc) };
}

function decodeAnswer(step: CandidateStep, answer: string): CandidateStepResult {
  const [what, state, attempt] = answer.split('|');
  if (what === 'ok')
    return { ok: true, state: state === 'gone' ? 'gone' : (stateNamed(state) ?? 'gone'), attempt: Number(attempt) };
  if (what === 'stale-epoch' || what === 'no-such-candidate' || what === 'no-such-job' || what === 'wrong-state') {
    return { ok: false, why: what };
  }
  throw new Error(`The queue answered ${JSON.stringify(answer)} to a candidate of job ${formatJobId(step.id)}.`);
}

async function nextCandidates(
  context: QueueContext,
  place: { readonly manager: string; readonly site: string; readonly state: CandidateState; readonly limit?: number },
): Promise<Candidate[]> {
  const { manager, site, state } = place;
  const numbers = await context.names.numbers([manager, site]);
  const found = textsOf(
    await context.db.script('next-candidates', [
      numbers.get(manager) ?? '0',
      numbers.get(site) ?? '0',
      state,
      place.limit ?? -1,
    ]),
  );
  const candidates: Candidate[] = [];
  for (let at = 0; at + 4 < found.length; at += 5) {
    const [cluster, proc, attempt, since, message = ''] = found.slice(at, at + 5);
    const id = { cluster: Number(cluster), proc: Number(proc) };
    candidates.push({ id, attempt: Number(attempt), manager, site, state, since: Number(since), message });
  }
  return candidates;
}

async function candidatesOf(context: QueueContext, ids: readonly JobId[]): Promise<JobCandidates[]> {
  if (ids.length === 0) return [];
  const texts = await context.db.run(async (redis) => {
    const pipeline = redis.pipeline();
    for (const { cluster, proc } of ids) pipeline.hget(`${context.db.prefix}b:${cluster}`, String(proc));
    return answersOf(TEXT_OR_NONE, await pipeline.exec());
  });
  const kept = texts.map((text) => (text === null ? undefined : parseStored(KEPT, text, CANDIDATES_PLACE)));
  const names = await context.names.names(
    kept.flatMap((one) => [
      ...Object.values(one?.open ?? {}).flatMap(({ m, w }) => [m, w]),
      ...Object.keys(one?.refused ?? {}),
    ]),
  );
  return ids.map((id, i) => ({
    id,
    open: Object.entries(kept[i]?.open ?? {}).flatMap(([attempt, { s, m, w, t, n }]): Candidate[] => {
      const state = stateNamed(s);
      if (state === undefined) return [];
      const [manager, site] = [names.get(m) ?? '', names.get(w) ?? ''];
      return [{ id, attempt: Number(attempt), manager, site, state, since: Number(t), message: n ?? '' }];
    }),
    refused: Object.entries(kept[i]?.refused ?? {}).map(([site, message]) => ({
      site: names.get(site) ?? '',
      message,
    })),
  }));
}

async function places(context: QueueContext): Promise<CandidatePlace[]> {
  const counts = Object.entries(await context.db.run((redis) => redis.hgetall(`${context.db.prefix}candidates`)));
  const names = await context.names.names(counts.flatMap(([place]) => place.split(':', 2)));
  return counts.flatMap(([place, count]) => {
    const [manager = '0', site = '0', name] = place.split(':');
    const state = stateNamed(name);
    if (state === undefined) return [];
    return [{ manager: names.get(manager) ?? '', site: names.get(site) ?? '', state, candidates: Number(count) }];
  });
}

function stateNamed(name: string | undefined): CandidateState | undefined {
  return CANDIDATE_STATES.find((state) => state === name);
}
