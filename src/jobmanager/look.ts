import type { Patience } from '../backends/contract.ts';
import { type AttemptKey, isAttemptKey } from '../job/ids.ts';
import type { Chunk, FileSize, Follow, Piece } from '../site/contract.ts';
import { type SiteAnswer, MOST_DATA } from './answer.ts';
import { mostOfPiece, piecesOf, sizesOf, watchWords } from './watching.ts';
import type { ViewEntry } from './entry.ts';
import { percentDecode } from '../site/escape.ts';
import type { ViewAction } from './classify.ts';
import { Skew } from './skew.ts';
import { batches, type JobManagerContext, words, answerFields } from './site-context.ts';

/** The most bytes of all streams in one answer. */
const MOST_CHUNKS = 64 << 20;

/** After a change, the queue is queried again after this many times the shortest interval. */
const QUICK = 3;
/** The interval grows by this factor each time a quiet queue is queried. */
const SLOWER = 1.5;

/** A timer may end so much before its time by a finer clock, milliseconds. */
export const EARLY_MS = 2;
/**
 * Sites that rest at least so long are looked at together with others of this process, at the ticks of a common clock: a process that
 * wakes for one look spends most of its time on waking. Milliseconds.
 */
const LONG_REST_MS = 20_000;
const TICK_MS = 5000;
/** What is fewer ticks ahead is not moved to one. */
const FAR = 4;
/** The shortest wait between two looks, milliseconds. */
const LEAST_MS = 50;

/** Intervals in milliseconds. */
export interface LookPace {
  /** Between two looks at the queue while something is in doubt or has just changed. */
  readonly soonest: number;
  /** Between two looks while nothing happens. */
  readonly latest: number;
}

/** The batch system's own pace unless the site sets another; never faster than the batch system tolerates. */
export function paceOf(
  { lookAgain, lookEvery }: Pick<Patience, 'lookAgain' | 'lookEvery'>,
  {
    lookMin = 0,
    lookMax = lookEvery,
  }: { readonly lookMin?: number | undefined; readonly lookMax?: number | undefined },
): LookPace {
  const soonest = Math.max(lookAgain, lookMin);
  return { soonest, latest: Math.max(soonest, lookMax) };
}

export interface LookResult {
  readonly chunks: readonly Chunk[];
  /** Of files that grow. */
  readonly sizes: readonly FileSize[];
  readonly pieces: readonly Piece[];
  /** Why the batch system gave no good answer; undefined if it did, or was not asked. */
  readonly queueError: string | undefined;
}

/** Looks at the site repeatedly; tracks which answers were processed and which events to acknowledge. */
export class Looker {
  readonly #site: JobManagerContext;
  readonly #pace: LookPace;
  readonly skew = new Skew();
  #every: number;
  /** While nothing happens, no look is needed more often than this, milliseconds. */
  restMs = 0;
  #acks: string[] = [];
  #generation = 0;
  #listed = false;
  /** When the queue, and when the site was looked at. */
  #lookedAt = Number.NEGATIVE_INFINITY;
  #askedAt = Number.NEGATIVE_INFINITY;
  /** How much news the site had announced before the last look. */
  news = 0;
  #answered = false;
  /** The streams and files that it was asked for. */
  #followed = '';
  #troubled = false;
  readonly #asked = new Set<string>();

  constructor(site: JobManagerContext, pace: LookPace) {
    this.#site = site;
    this.#pace = pace;
    this.#every = pace.latest;
  }

  /** Makes the next look list everything. */
  listAgain(): void {
    this.#listed = false;
  }

  /** Called after an operation that the queue will show. */
  hurry(): void {
    this.#every = this.#pace.soonest;
  }

  /** Milliseconds until the next query of the queue. */
  get due(): number {
    return this.#lookedAt + this.#interval - this.#site.now();
  }

  get #interval(): number {
    const soon = this.#troubled || this.#site.view.inDoubt;
    return soon ? this.#pace.soonest : this.#every;
  }

  /** Whether the next look should query the queue: at the last tick before the time, if it is queried seldom. */
  get isDue(): boolean {
    const isSeldom = this.#sharesTicks && this.#interval >= FAR * TICK_MS;
    return this.due <= (isSeldom ? TICK_MS : EARLY_MS);
  }

  get #sharesTicks(): boolean {
    return this.restMs >= LONG_REST_MS;
  }

  /** The last common tick before a time of the site's clock, or that time if the site is looked at more often. */
  onTick(at: number): number {
    const isFar = at - this.#site.now() >= FAR * TICK_MS;
    return this.#sharesTicks && isFar ? Math.floor(at / TICK_MS) * TICK_MS : at;
  }

  /**
   * Whether a look would bring what the last one brought, which is good for so many milliseconds: the site has announced nothing since,
   * is told and asked nothing else, and its queue is not due.
   */
  isIdle(follow: readonly Follow[], goodFor: number): boolean {
    const { session, asking, now } = this.#site;
    // Only a look tells that the site answers again.
    if (!this.#answered || !session.isRunning) return false;
    if (this.#acks.length > 0 || this.isDue || now() >= this.#askedAt + goodFor - EARLY_MS) return false;
    if (!this.#listed || this.#generation !== session.generation || this.news !== session.newsCount) return false;
    return asking.words().length === 0 && followWords(follow) === this.#followed;
  }

  /** How long to wait for news before the next look, milliseconds: to `until` at most. */
  patience(until: number, goodFor: number): number {
    const next = Math.min(this.onTick(this.#site.now() + this.due), this.#askedAt + goodFor);
    return Math.min(until - this.#site.now(), Math.max(next - this.#site.now(), LEAST_MS));
  }

  /** One exchange, and the actions that follow from it: fencing, accounting, removing stale copies from the queue. */
  async look(options: { queue: boolean; follow?: readonly Follow[] }): Promise<LookResult> {
    const { session, view, asking, now } = this.#site;
    await session.hello();
    const list = !this.#listed || this.#generation !== session.generation;
    const queue = options.queue || list;
    const acks = this.#acks;
    const followed = options.follow ?? [];
    this.#followed = followWords(followed);
    const generation = session.generation;
    const before = view.change;
    const about = [...asking.words(), ...(this.#followed === '' ? [] : [this.#followed])];
    const body = words([...acks.map((name) => `ack:${name}`), ...about]);
    const asked = Date.now() / 1000;
    this.news = session.newsCount;
    this.#askedAt = now();
    this.#answered = false;
    const chunk = Math.min(MOST_DATA, Math.floor(MOST_CHUNKS / (2 * Math.max(1, followed.length))));
    const numbers = [queue ? 1 : 0, list ? 1 : 0, chunk, asking.open ? 1 : 0, mostOfPiece(followed)];
    const answer = await session.exchange('poll', [body], numbers);
    const [there] = answerFields(answer, 'time')[0] ?? [];
    if (there !== undefined) this.skew.heard(Number(there), asked, Date.now() / 1000);
    asking.take(answer);
    this.#acks = view.take(answer, now());
    const error = queueError(answer);
    if (queue) {
      this.#lookedAt = now();
      this.#troubled = error !== undefined;
    }
    // A JobManager that was restarted during this exchange has lost its record of what it told us.
    this.#listed = (list || this.#generation === generation) && session.generation === generation;
    this.#generation = generation;
    await this.#act(view.classify(now()));
    this.#answered = true;
    const latest = Math.max(this.#pace.latest, this.restMs);
    if (view.change !== before) this.#every = Math.min(latest, QUICK * this.#pace.soonest);
    else if (queue) this.#every = Math.min(latest, this.#every * SLOWER);
    const files = { sizes: sizesOf(answer), pieces: piecesOf(answer, followed) };
    return { chunks: chunksOf(answer), ...files, queueError: error };
  }

  async #act(actions: ReadonlyMap<ViewAction, readonly ViewEntry[]>): Promise<void> {
    const { session, view, now, backend } = this.#site;
    for (const batch of batches(actions.get('fence') ?? [], 500)) {
      const answer = await session.exchange('fence', [words(batch.map((entry) => `${entry.key}:${entry.submission}`))]);
      for (const [key = '', n] of answerFields(answer, 'fenced')) view.fencedBy(key as AttemptKey, Number(n), 'lost');
      if (answerFields(answer, 'taken').length > 0) this.listAgain();
    }
    let closed = false;
    for (const batch of batches(actions.get('close') ?? [], 500)) {
      const runs = batch.map(({ key, submission, owner }) => `${key}:${submission}/next.${(owner?.run ?? 0) + 1}`);
      const answer = await session.exchange('fence', [words(runs)]);
      for (const [key = '', name = ''] of answerFields(answer, 'fenced'))
        view.closed(key as AttemptKey, Number(name.split('/next.')[1]));
      for (const [key = ''] of answerFields(answer, 'taken')) {
        view.taken(key as AttemptKey, now());
        this.listAgain();
      }
      closed = true;
    }
    if (actions.has('list')) this.listAgain();
    const ids = [
      ...new Set((actions.get('account') ?? []).flatMap((entry) => entry.owner?.batchId ?? entry.batchId ?? [])),
    ];
    for (const batch of batches(ids, 200)) {
      const answer = await session.exchange('account', [words(batch)]);
      const said = answer.lines
        .filter((line) => line.kind === 'account')
        .flatMap((line) => backend.accountOf?.(line.rest) ?? []);
      // If an id has several lines, the last is its latest run.
      for (const account of said) view.accountFor(account.id, account);
      for (const id of batch) view.accountFor(id, 'nothing');
    }
    // Closed, fenced and accounted attempts are classified again.
    const more = closed || actions.has('fence') || actions.has('account') ? view.classify(now()) : undefined;
    const staleCopies = [
      ...view.staleCopies(),
      ...[...(actions.get('prune') ?? []), ...(more?.get('prune') ?? [])].map(
        (entry) => `gryphus.${entry.key}.${entry.submission}`,
      ),
    ];
    const fresh = [...new Set(staleCopies)].filter((tag) => !this.#asked.has(tag));
    if (fresh.length > 0) {
      await session.exchange('prune', [words(fresh)]);
      for (const tag of fresh) this.#asked.add(tag);
    }
  }
}

function followWords(followed: readonly Follow[]): string {
  const streams = followed.map(({ key, stdout, stderr }) => `${key}:${stdout}:${stderr}`);
  return words([...streams, ...watchWords(followed)]);
}

/** Why the queue's answer was not good, as the site reported it. */
function queueError(answer: SiteAnswer): string | undefined {
  const [verdict, status, said = ''] = answerFields(answer, 'queue')[0] ?? [];
  if (verdict !== 'bad') return undefined;
  if (status === '124' || status === '137') return 'its queue command did not answer in time';
  const message = percentDecode(said).trim().split('\n').at(-1);
  return message === undefined || message === '' ? "its queue command's answer could not be parsed" : message;
}

function chunksOf(answer: SiteAnswer): Chunk[] {
  return answer.lines.flatMap(({ kind, rest, bytes }) => {
    const [key = '', stream, at] = rest.split(' ');
    const offset = Number(at);
    if (kind !== 'data' || bytes === undefined || bytes.length === 0) return [];
    if (!isAttemptKey(key) || !Number.isSafeInteger(offset) || offset < 0) return [];
    return [{ key, stream: stream === 'err' ? 'stderr' : 'stdout', offset, data: bytes } as const];
  });
}
