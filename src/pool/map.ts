import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { join } from 'node:path';
import { GryphusError } from '../errors.ts';
import type { AttrTexts } from '../job/attrs.ts';
import type { AttemptKey } from '../job/ids.ts';
import type { Ending } from '../site/contract.ts';
import { STREAM_FILES } from '../staging/streams.ts';
import { deferred } from '../util/deferred.ts';
import type { ToClient } from './client-wire.ts';
import { DeskClient } from './desk-client.ts';
import type { RunSpec, Size } from './wire.ts';

/** One task: the words that follow the program's own. */
export interface MapTask<T> {
  readonly args: readonly string[];
  /** Comes back with the result. */
  readonly of: T;
}

export interface MapResult<T> {
  readonly of: T;
  /** Counts from 0 in the order of the input. */
  readonly index: number;
  readonly ending: Ending;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  /** How often it was started. */
  readonly tries: number;
}

export interface MapOptions {
  /** The desk's socket for clients. */
  readonly socket: string;
  readonly owner: string;
  /** What all tasks have in common; their arguments are added to its own. */
  readonly spec: RunSpec;
  readonly ad: AttrTexts;
  readonly size: Size;
  /** A task that fails is started again so often. */
  readonly retries: number;
  /** Tasks that the desk has at once. */
  readonly window?: number;
  readonly signal?: AbortSignal;
}

interface Open<T> {
  readonly of: T;
  readonly index: number;
  readonly args: readonly string[];
  tries: number;
}

const WINDOW = 500;
/** While the desk has more tasks than this, more of them, and what it may forget, are said together, milliseconds. */
const PLENTY = 200;
const TOGETHER_MS = 20;
const AGAIN_MS = 200;
/** A desk that does not come back for so long is given up, milliseconds. */
const PATIENCE_MS = 120_000;
const LEASE_SECONDS = 2400;

/**
 * Master and workers: tasks go to the pool's slots as they become free, and results come back in the order of
 * completion. No task is in the queue: the caller keeps them, and names them again to a desk that was restarted, which
 * knows by its journal what was granted already.
 */
export async function* mapTasks<T>(
  tasks: AsyncIterable<MapTask<T>> | Iterable<MapTask<T>>,
  options: MapOptions,
): AsyncGenerator<MapResult<T>> {
  const run = new MapRun<T>(options);
  const feeding = run.feed(tasks);
  feeding.catch((thrown: unknown) => run.fail(thrown));
  try {
    yield* run.results();
    await feeding;
  } finally {
    await run.close();
  }
}

class MapRun<T> {
  readonly #options: MapOptions;
  readonly #session = `map-${randomBytes(9).toString('base64url')}`;
  readonly #desk: DeskClient;
  readonly #open = new Map<AttemptKey, Open<T>>();
  readonly #done: MapResult<T>[] = [];
  #unsent: [AttemptKey, readonly string[]][] = [];
  #forgotten: AttemptKey[] = [];
  #soonest: NodeJS.Immediate | undefined;
  #later: NodeJS.Timeout | undefined;
  #fed = false;
  #failure: unknown;
  #closed = false;
  #lostAt: number | undefined;
  #changed = deferred<void>();

  constructor(options: MapOptions) {
    this.#options = options;
    this.#desk = new DeskClient({
      socket: options.socket,
      client: this.#session,
      map: true,
      take: (message, bytes) => {
        if (message.t === 'result') void this.#result(message, bytes);
      },
      onLost: () => void this.#again(),
    });
    options.signal?.addEventListener('abort', () =>
      this.fail(new GryphusError('interrupted', 'The map was ended: the tasks that ran are stopped.')),
    );
  }

  /** Gives tasks to the desk as it has room for them. */
  async feed(tasks: AsyncIterable<MapTask<T>> | Iterable<MapTask<T>>): Promise<void> {
    await this.#base();
    let index = 0;
    for await (const { args, of } of tasks) {
      while (this.#open.size >= Math.min(this.#options.window ?? WINDOW, WINDOW) && !this.#failure)
        await this.#changed.promise;
      if (this.#failure || this.#closed) return;
      this.#give({ of, index: index++, args, tries: 0 });
    }
    this.#fed = true;
    this.#wake();
  }

  async *results(): AsyncGenerator<MapResult<T>> {
    for (;;) {
      const result = this.#done.shift();
      if (result) {
        yield result;
        continue;
      }
      if (this.#failure) throw this.#failure;
      if (this.#fed && this.#open.size === 0) return;
      await this.#changed.promise;
    }
  }

  fail(thrown: unknown): void {
    this.#failure ??= thrown;
    this.#wake();
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearImmediate(this.#soonest);
    clearTimeout(this.#later);
    // What is open when nobody waits any more is withdrawn.
    const rest = [...this.#open.keys()];
    if (rest.length > 0)
      await this.#desk.ask({ t: 'cancel', keys: rest, how: 'remove' }, 'done').catch(() => undefined);
    const keys = [...this.#forgotten, ...rest];
    if (keys.length > 0) await this.#desk.ask({ t: 'forget', keys }, 'done').catch(() => undefined);
    await this.#desk.close();
  }

  #give(open: Open<T>): void {
    open.tries += 1;
    const key: AttemptKey = `${this.#session}.${open.index}.0.${open.tries}`;
    this.#open.set(key, open);
    this.#unsent.push([key, open.args]);
    this.#soon();
  }

  /** What comes together goes together; only a desk that soon has no tasks left is told of more at once. */
  #soon(): void {
    const has = this.#open.size - this.#unsent.length;
    const send = () => void this.#send().catch(() => undefined);
    if (this.#unsent.length > 0 && has < PLENTY) this.#soonest ??= setImmediate(send);
    else this.#later ??= setTimeout(send, TOGETHER_MS);
  }

  async #send(): Promise<void> {
    clearImmediate(this.#soonest);
    clearTimeout(this.#later);
    this.#soonest = undefined;
    this.#later = undefined;
    const tasks = this.#unsent;
    this.#unsent = [];
    if (tasks.length > 0) await this.#desk.say({ t: 'tasks', base: this.#session, tasks });
    const keys = this.#forgotten;
    this.#forgotten = [];
    if (keys.length === 0) return;
    try {
      await this.#desk.ask({ t: 'forget', keys }, 'done');
    } catch (thrown) {
      // The next desk knows of them by its journal.
      this.#forgotten.push(...keys);
      throw thrown;
    }
  }

  async #base(): Promise<void> {
    const { spec, ad, size, owner } = this.#options;
    await this.#desk.say({ t: 'base', base: this.#session, spec, ad, size, owner, lease: LEASE_SECONDS });
  }

  async #result(message: Extract<ToClient, { t: 'result' }>, bytes: Buffer): Promise<void> {
    const { key, ending } = message;
    const open = this.#open.get(key);
    // What was withdrawn because nobody waits any more is not started again.
    if (!open || this.#closed) return;
    const evicted = ending.how.kind === 'by-site' && EVICTED.has(ending.how.cause);
    const failed = ending.how.kind !== 'exited' || ending.how.code !== 0;
    if (evicted || (failed && open.tries <= this.#options.retries)) {
      this.#open.delete(key);
      this.#forgotten.push(key);
      return this.#give(open);
    }
    const streams = message.inline
      ? {
          stdout: Buffer.from(bytes.subarray(0, message.inline.stdout)),
          stderr: Buffer.from(bytes.subarray(message.inline.stdout)),
        }
      : await this.#fetch(key).catch(() => undefined);
    // The desk went away meanwhile: it tells the result again.
    if (!streams || !this.#open.delete(key)) return;
    this.#forgotten.push(key);
    this.#soon();
    this.#done.push({ of: open.of, index: open.index, ending, tries: open.tries, ...streams });
    this.#wake();
  }

  async #fetch(key: AttemptKey): Promise<{ stdout: Buffer; stderr: Buffer }> {
    const into = await mkdtemp(join(tmpdir(), 'gryphus-map-'));
    try {
      const request = { key, outputs: [], stdout: true, stderr: true, into };
      for (;;) {
        const { outcome } = await this.#desk.ask({ t: 'fetch', request }, 'fetched');
        if (outcome.ok || outcome.refusal.kind !== 'later') break;
        // They are on their way, or their worker is away.
        if (this.#closed) throw new GryphusError('interrupted', outcome.refusal.message);
        await delay(AGAIN_MS);
      }
      const read = (name: string) => {
        try {
          return readFileSync(join(into, name));
        } catch {
          return Buffer.alloc(0);
        }
      };
      return { stdout: read(STREAM_FILES.stdout), stderr: read(STREAM_FILES.stderr) };
    } finally {
      await rm(into, { recursive: true, force: true });
    }
  }

  /** The desk went away: everything that is open is named to the next one. */
  async #again(): Promise<void> {
    if (this.#closed) return;
    this.#lostAt ??= performance.now();
    if (performance.now() - this.#lostAt > PATIENCE_MS)
      return this.fail(new GryphusError('site-unreachable', "The pool's desk went away and does not come back."));
    try {
      await this.#base();
      this.#unsent = [...this.#open].map(([key, { args }]) => [key, args]);
      await this.#send();
      this.#lostAt = undefined;
    } catch {
      setTimeout(() => void this.#again(), AGAIN_MS);
    }
  }

  #wake(): void {
    const changed = this.#changed;
    this.#changed = deferred();
    changed.resolve();
  }
}

/** Ends that say nothing of the task: it is started again without counting. */
const EVICTED: ReadonlySet<string> = new Set(['preempted', 'node-fail', 'vanished', 'cancelled']);
