import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { GryphusError } from '../../src/errors.ts';
import type { AttemptKey } from '../../src/job/ids.ts';
import type {
  AttemptSpec,
  CancelOptions,
  FetchOutcome,
  FetchRequest,
  Outcome,
  Outcomes,
  PollAnswer,
  PollRequest,
  Refusal,
  Report,
  Site,
  SiteFacts,
} from '../../src/site/contract.ts';

type Stage = 'prepared' | 'queued' | 'asking' | 'lost' | 'running' | 'ended' | 'withdrawn';

interface Held {
  readonly spec: AttemptSpec;
  stage: Stage;
  changed: number;
  /** For an attempt that waits for permission to start: it has been granted. */
  leave: boolean;
}

export interface Weather {
  /** Probability that a request never arrives, that its answer never arrives, that it arrives twice. */
  readonly lost: number;
  readonly unanswered: number;
  readonly twice: number;
  /** Probability that a message takes up to 30 ms each way. */
  readonly late: number;
}

export const CLEAR: Weather = { lost: 0, unanswered: 0, twice: 0, late: 0 };

/**
 * A site in memory that keeps its promises whatever the network does to the messages: requests get lost or arrive
 * twice, answers get lost. It counts the starts of each program.
 */
export class SimulatedSite implements Site {
  readonly name: string;
  readonly starts = new Map<AttemptKey, number>();
  /** Called with each answer before it arrives: what it throws is what the caller's code encountered. */
  met:
    | ((call: 'prepare' | 'commit' | 'poll' | 'fetch' | 'forget' | 'cancel', keys: readonly AttemptKey[]) => void)
    | undefined;
  /** Results that our own disk has no space for: the fetch of a batch with one of these fails. */
  readonly noRoomFor = new Set<AttemptKey>();
  readonly #held = new Map<AttemptKey, Held>();
  readonly #random: () => number;
  weather: Weather = CLEAR;
  /** While set, nothing answers. */
  cut = false;
  /** While set, requests to prepare wait for it. */
  slow: Promise<void> | undefined;
  /** While set, nothing starts. */
  full = false;
  /** While set, cancelled attempts do not end. */
  stuck = false;
  /** The time from which each was to end, as every cancel request gave it. */
  readonly since = new Map<AttemptKey, (number | undefined)[]>();
  #clock = 0;

  constructor(name: string, random: () => number) {
    this.name = name;
    this.#random = random;
  }

  get holds(): readonly AttemptKey[] {
    return [...this.#held.keys()];
  }

  /** From now on, an attempt is reported to be in this state. */
  says(key: AttemptKey, stage: 'lost' | 'running' | 'ended'): void {
    const held = this.#held.get(key);
    if (held) this.#move(held, stage);
  }

  /** Some queued jobs start, some running ones end. */
  tick(): void {
    for (const [key, held] of this.#held) {
      const asks = held.spec.leaveWithin !== undefined && !held.leave;
      if (this.full && (held.stage === 'queued' || held.stage === 'asking')) continue;
      if (asks && held.stage === 'queued') {
        if (this.#random() < 0.6) this.#move(held, 'asking');
      } else if (asks && held.stage === 'asking') {
        // Permission to start was not granted in time.
        if (this.#random() < 0.05) this.#move(held, 'lost');
      } else if ((held.stage === 'queued' || held.stage === 'asking') && this.#random() < 0.6) {
        this.#move(held, 'running');
        this.starts.set(key, (this.starts.get(key) ?? 0) + 1);
      } else if (held.stage === 'running' && this.#random() < 0.6) this.#move(held, 'ended');
    }
  }

  describe(): Promise<SiteFacts> {
    return this.#over(() => ({
      host: this.name,
      os: 'Linux',
      arch: 'x86_64',
      user: 'u',
      home: '/h',
      freeDiskKb: 1,
      batch: 'simulated',
      batchVersion: undefined,
    }));
  }

  async prepare(specs: readonly AttemptSpec[]): Promise<Outcomes> {
    await this.slow;
    return this.#over(() => {
      this.met?.(
        'prepare',
        specs.map(({ key }) => key),
      );
      const outcomes = new Map<AttemptKey, Outcome>();
      for (const spec of specs) {
        if (!this.#held.has(spec.key))
          this.#held.set(spec.key, { spec, stage: 'prepared', changed: ++this.#clock, leave: false });
        outcomes.set(spec.key, { ok: true });
      }
      return outcomes;
    });
  }

  async commit(keys: readonly AttemptKey[]): Promise<Outcomes> {
    this.met?.('commit', keys);
    return this.#each(keys, (held) => {
      if (held.stage === 'prepared' || held.stage === 'lost') this.#move(held, 'queued');
    });
  }

  leave(keys: readonly AttemptKey[]): Promise<Outcomes> {
    return this.#each(keys, (held) => {
      held.leave = true;
    });
  }

  async cancel(keys: readonly AttemptKey[], { since, onlyIfNotStarted }: CancelOptions = {}): Promise<Outcomes> {
    this.met?.('cancel', keys);
    for (const key of keys) this.since.set(key, [...(this.since.get(key) ?? []), since?.get(key)]);
    if (this.stuck) {
      const refusal = { kind: 'later', code: 'site-busy', message: 'it does not end' } as const;
      return this.#over(() => new Map(keys.map((key) => [key, { ok: false, refusal }])));
    }
    const started = { kind: 'never', code: 'already-started', message: 'it has started' } as const;
    return this.#each(
      keys,
      (held) => {
        if (onlyIfNotStarted && (held.stage === 'running' || held.stage === 'ended')) return started;
        if (held.stage !== 'ended') this.#move(held, 'withdrawn');
        return undefined;
      },
      true,
    );
  }

  async forget(keys: readonly AttemptKey[]): Promise<Outcomes> {
    this.met?.('forget', keys);
    return this.#each(keys, (held) => void this.#held.delete(held.spec.key), true);
  }

  async poll({ cursor }: PollRequest): Promise<PollAnswer> {
    // Like a real site, which waits for news: no busy loop.
    await new Promise((done) => setTimeout(done, 5));
    return this.#over(() => {
      this.met?.('poll', this.holds);
      const since = cursor === undefined ? 0 : Number(cursor);
      const reports = [...this.#held]
        .filter(([, held]) => held.changed > since)
        .flatMap(([key, held]) => reportOf(key, held));
      return { cursor: String(this.#clock), complete: cursor === undefined, reports, chunks: [] };
    });
  }

  async fetch(requests: readonly FetchRequest[]): Promise<ReadonlyMap<AttemptKey, FetchOutcome>> {
    return this.#over(async () => {
      this.met?.(
        'fetch',
        requests.map(({ key }) => key),
      );
      if (requests.some(({ key }) => this.noRoomFor.has(key))) throw new GryphusError('disk-full', 'No space left.');
      const outcomes = new Map<AttemptKey, FetchOutcome>();
      for (const { key, into, stdout } of requests) {
        if (this.#held.get(key)?.stage !== 'ended') {
          const refusal = { kind: 'gone', code: 'unknown-key', message: 'not here' } as const;
          outcomes.set(key, { ok: false, missing: [], refusal });
          continue;
        }
        await mkdir(into, { recursive: true });
        const path = join(into, 'out');
        await writeFile(path, `${key}\n`);
        const files = stdout
          ? [{ name: 'out', kind: 'stdout', path, bytes: key.length + 1, executable: false } as const]
          : [];
        outcomes.set(key, { ok: true, files });
      }
      return outcomes;
    });
  }

  async close(): Promise<void> {}

  #move(held: Held, stage: Stage): void {
    held.stage = stage;
    held.changed = ++this.#clock;
  }

  /** `act` returns its refusal, if any. */
  #each(
    keys: readonly AttemptKey[],
    act: (held: Held) => Refusal | undefined | void,
    unknownIsFine = false,
  ): Promise<Outcomes> {
    return this.#over(() => {
      const outcomes = new Map<AttemptKey, Outcome>();
      for (const key of keys) {
        const held = this.#held.get(key);
        const said = held && act(held);
        const gone = { kind: 'gone', code: 'unknown-key', message: 'not here' } as const;
        const refusal = said || (held || unknownIsFine ? undefined : gone);
        outcomes.set(key, refusal ? { ok: false, refusal } : { ok: true });
      }
      return outcomes;
    });
  }

  /** What the network makes of one exchange. */
  async #over<T>(act: () => T | Promise<T>): Promise<T> {
    await this.#late();
    if (this.cut || this.#random() < this.weather.lost) throw unreachable(this.name);
    if (this.#random() < this.weather.twice) await act();
    const answer = await act();
    await this.#late();
    if (this.#random() < this.weather.unanswered) throw unreachable(this.name);
    return answer;
  }

  /** Messages overtake one another. */
  async #late(): Promise<void> {
    const ms = this.#random() < this.weather.late ? this.#random() * 30 : 0;
    await new Promise((done) => setTimeout(done, ms));
  }
}

function reportOf(key: AttemptKey, held: Held): Report[] {
  switch (held.stage) {
    case 'prepared':
      return [{ key, is: 'prepared' }];
    case 'queued':
      return [{ key, is: 'queued' }];
    case 'asking':
      return [{ key, is: 'asking', host: 'node1' }];
    case 'lost':
      return [{ key, is: 'lost', why: 'no leave' }];
    case 'running':
      return [{ key, is: 'running', host: 'node1' }];
    case 'ended':
      return [{ key, is: 'ended', how: { kind: 'exited', code: 0 } }];
    case 'withdrawn':
      return [];
  }
}

function unreachable(name: string): GryphusError {
  return new GryphusError('site-unreachable', `Site ${name} does not answer.`);
}
