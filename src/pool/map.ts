import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { join } from 'node:path';
import { GryphusError } from '../errors.ts';
import type { AttemptKey } from '../job/ids.ts';
import type { Ending, FetchOutcome, FetchRequest, InputFile } from '../site/contract.ts';
import { STREAM_FILES } from '../staging/streams.ts';
import { deferred } from '../util/deferred.ts';
import type { FromClient, ToClient } from './wire/client-wire.ts';
import { CentralManagerClient } from './central-manager-client.ts';
import { journalOrigin } from './host/journal.ts';
import { notMade, placeOutputs } from './map-outputs.ts';
import type { MapOptions, MapResult, PoolTask } from './map-types.ts';

interface Open<T> {
  readonly of: T;
  readonly index: number;
  readonly args: readonly string[];
  readonly inputs: readonly InputFile[];
  readonly outputs: readonly string[];
  tries: number;
  /** Whether a central manager may have it under its present key. */
  isSent: boolean;
}

/** What has come home of a task. */
interface Home {
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  readonly problem?: string;
}

type Named = Extract<FromClient, { t: 'tasks' }>['tasks'][number];

const WINDOW = 500;
/**
 * While the central manager has more tasks than this, further tasks, and those it may forget, are sent in batches at
 * this interval, in milliseconds.
 */
const PLENTY = 200;
const TOGETHER_MS = 20;
const AGAIN_MS = 200;
/** How long to wait for a central manager to return, in milliseconds. */
const PATIENCE_MS = 120_000;
const LEASE_SECONDS = 2400;

/**
 * Runs tasks as master and workers: they go to the pool's slots as these become free, and results come back in the
 * order of completion. The tasks are not in the queue: the caller keeps them, and names them again to a restarted
 * central manager, whose journal says which were already granted.
 */
export async function* mapTasks<T>(
  tasks: AsyncIterable<PoolTask<T>>,
  options: MapOptions<T>,
): AsyncGenerator<MapResult<T>> {
  const run = new MapRun<T>(options);
  const feeding = run.feed(tasks);
  feeding.catch((thrown: unknown) => run.fail(thrown));
  try {
    yield* run.results();
    // It may wait for a next task that is not wanted.
    if (!options.enough?.aborted) await feeding;
  } finally {
    await run.close();
  }
}

class MapRun<T> {
  readonly #options: MapOptions<T>;
  readonly #session = `map-${randomBytes(9).toString('base64url')}`;
  readonly #centralManager: CentralManagerClient;
  readonly #open = new Map<AttemptKey, Open<T>>();
  readonly #done: MapResult<T>[] = [];
  /** The results that are being fetched and placed. */
  readonly #turns = new Map<AttemptKey, Promise<void>>();
  #unsent: AttemptKey[] = [];
  #forgotten: AttemptKey[] = [];
  #soonest: NodeJS.Immediate | undefined;
  #later: NodeJS.Timeout | undefined;
  #fed = false;
  #failure: unknown;
  #closed = false;
  #lostAt: number | undefined;
  /** Of the journal that has the grants of this map's tasks. */
  #origin: string | undefined;
  #changed = deferred<void>();

  constructor(options: MapOptions<T>) {
    this.#options = options;
    this.#centralManager = new CentralManagerClient({
      socket: options.socket,
      client: this.#session,
      map: true,
      take: (message, bytes) => {
        if (message.t === 'result') void this.#inTurn(message, bytes);
      },
      onLost: () => void this.#again(),
    });
    const interrupt = () =>
      this.fail(new GryphusError('interrupted', 'The map was interrupted: its running tasks are stopped.'));
    if (options.signal?.aborted) interrupt();
    options.signal?.addEventListener('abort', interrupt);
    options.enough?.addEventListener('abort', () => void this.#withdraw());
  }

  /** Gives tasks to the central manager as it has capacity for them. */
  async feed(tasks: AsyncIterable<PoolTask<T>>): Promise<void> {
    await this.#base();
    this.#origin = journalOrigin(this.#options.journal);
    let index = 0;
    for await (const task of tasks) {
      while (this.#open.size >= Math.min(this.#options.window ?? WINDOW, WINDOW) && !this.#failure && !this.#fed)
        await this.#changed.promise;
      if (this.#failure || this.#closed || this.#fed) return;
      if (task.refused === undefined) this.#give({ ...task, index: index++, tries: 0, isSent: false });
      else this.#refuse(task.of, index++, task.refused);
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
    // Nobody is waiting any more: withdraws the open tasks.
    const rest = [...this.#open.keys()];
    if (rest.length > 0)
      await this.#centralManager.ask({ t: 'cancel', keys: rest, how: 'remove' }, 'done').catch(() => undefined);
    const keys = [...this.#forgotten, ...rest];
    if (keys.length > 0) await this.#centralManager.ask({ t: 'forget', keys }, 'done').catch(() => undefined);
    await this.#centralManager.close();
  }

  /** Takes back what has not started. */
  async #withdraw(): Promise<void> {
    this.#fed = true;
    for (const key of this.#unsent.splice(0)) this.#open.delete(key);
    let keys = [...this.#open.keys()];
    while (keys.length > 0 && !this.#closed) {
      try {
        const { outcomes } = await this.#centralManager.ask({ t: 'cancel', keys, how: 'if-not-started' }, 'done');
        keys = [];
        for (const [key, outcome] of outcomes) {
          if (!outcome.ok && outcome.refusal.kind === 'later') keys.push(key);
          else if (outcome.ok && this.#open.delete(key)) this.#forgotten.push(key);
        }
      } catch {
        // The connection was lost: the next central manager is asked.
        keys = [...this.#open.keys()];
      }
      this.#wake();
      if (keys.length > 0) await delay(AGAIN_MS);
    }
    this.#wake();
  }

  #refuse(of: T, index: number, message: string): void {
    const ending: Ending = { how: { kind: 'by-site', cause: 'cannot-start', message } };
    this.#done.push({ of, index, ending, tries: 0, stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) });
    this.#wake();
  }

  #give(open: Open<T>): void {
    open.tries += 1;
    open.isSent = false;
    const key: AttemptKey = `${this.#session}.${open.index}.0.${open.tries}`;
    this.#open.set(key, open);
    this.#unsent.push(key);
    this.#soon();
  }

  /** Sends soon: at once if the central manager is about to run out of tasks, otherwise batched. */
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
    const tasks = this.#unsent.flatMap((key) => this.#named(key));
    this.#unsent = [];
    if (tasks.length > 0) await this.#centralManager.say({ t: 'tasks', base: this.#session, tasks });
    const keys = this.#forgotten;
    this.#forgotten = [];
    if (keys.length === 0) return;
    try {
      await this.#centralManager.ask({ t: 'forget', keys }, 'done');
    } catch (thrown) {
      // They must be forgotten by the next central manager too, which knows them from its journal.
      this.#forgotten.push(...keys);
      throw thrown;
    }
  }

  #named(key: AttemptKey): Named[] {
    const open = this.#open.get(key);
    if (!open) return [];
    open.isSent = true;
    const { args, inputs } = open;
    return [inputs.length > 0 ? [key, args, inputs] : [key, args]];
  }

  async #base(): Promise<void> {
    const { spec, ad, size, owner } = this.#options;
    await this.#centralManager.say({ t: 'base', base: this.#session, spec, ad, size, owner, lease: LEASE_SECONDS });
  }

  /**
   * A result may be reported again while its files are still being placed. Both would place the same files, under the
   * same temporary names.
   */
  async #inTurn(message: Extract<ToClient, { t: 'result' }>, bytes: Buffer): Promise<void> {
    const { key } = message;
    const before = this.#turns.get(key);
    const turn = before ? before.then(() => this.#result(message, bytes)) : this.#result(message, bytes);
    this.#turns.set(key, turn);
    await turn;
    if (this.#turns.get(key) === turn) this.#turns.delete(key);
  }

  async #result(message: Extract<ToClient, { t: 'result' }>, bytes: Buffer): Promise<void> {
    const { key, ending } = message;
    const open = this.#open.get(key);
    // A task that was withdrawn because nobody is waiting is not restarted.
    if (!open || this.#closed) return;
    const evicted = ending.how.kind === 'by-site' && EVICTED.has(ending.how.cause);
    const well = ending.how.kind === 'exited' && ending.how.code === 0;
    const enough = this.#options.enough?.aborted === true;
    const again = () => {
      if (!this.#open.delete(key)) return;
      this.#forgotten.push(key);
      if (enough) this.#wake();
      else this.#give(open);
    };
    const more = !enough && open.tries <= this.#options.retries;
    if (evicted || (!well && more)) return again();
    const outputs = well ? open.outputs : [];
    const home =
      message.inline && outputs.length === 0
        ? {
            stdout: Buffer.from(bytes.subarray(0, message.inline.stdout)),
            stderr: Buffer.from(bytes.subarray(message.inline.stdout)),
          }
        : await this.#fetch(key, outputs).catch(() => undefined);
    // The connection was lost in the meantime; the central manager will report the result again.
    if (!home || !this.#open.has(key)) return;
    if (home.problem !== undefined && more) return again();
    this.#open.delete(key);
    this.#forgotten.push(key);
    this.#soon();
    this.#done.push({ of: open.of, index: open.index, ending, tries: open.tries, ...home });
    this.#wake();
  }

  /** Fetches its streams and puts its outputs in place. */
  async #fetch(key: AttemptKey, outputs: readonly string[]): Promise<Home> {
    const into = await mkdtemp(join(this.#options.spoolDir, '.map-'));
    try {
      const outcome = await this.#bring({ key, outputs, stdout: true, stderr: true, into });
      const unplaced = await placeOutputs(this.#options.cwd, outcome.files ?? [], outputs);
      const problem = outcome.ok ? unplaced : notMade(outcome);
      const read = (name: string) => {
        try {
          return readFileSync(join(into, name));
        } catch {
          return Buffer.alloc(0);
        }
      };
      const streams = { stdout: read(STREAM_FILES.stdout), stderr: read(STREAM_FILES.stderr) };
      return problem === undefined ? streams : { ...streams, problem };
    } finally {
      await rm(into, { recursive: true, force: true });
    }
  }

  async #bring(request: FetchRequest): Promise<FetchOutcome> {
    for (;;) {
      const { outcome } = await this.#centralManager.ask({ t: 'fetch', request }, 'fetched');
      if (outcome.ok || outcome.refusal.kind !== 'later') return outcome;
      // They are on their way, or their worker is away.
      if (this.#closed) throw new GryphusError('interrupted', outcome.refusal.message);
      await delay(AGAIN_MS);
    }
  }

  /** The connection was lost: names all open tasks to the next central manager. */
  async #again(): Promise<void> {
    if (this.#closed) return;
    this.#lostAt ??= performance.now();
    if (performance.now() - this.#lostAt > PATIENCE_MS)
      return this.fail(
        new GryphusError(
          'site-unreachable',
          "The connection to the pool's central manager was lost and cannot be restored.",
        ),
      );
    try {
      await this.#base();
      const origin = journalOrigin(this.#options.journal);
      if (this.#origin !== undefined && origin !== this.#origin) this.#anew();
      this.#origin = origin;
      this.#unsent = [...this.#open.keys()];
      await this.#send();
      this.#lostAt = undefined;
    } catch (error) {
      if (error instanceof GryphusError && error.code === 'conflict') return this.fail(error);
      setTimeout(() => void this.#again(), AGAIN_MS);
    }
  }

  /**
   * The central manager has lost its journal, and ends at its workers what it does not know: a task of a former key could end
   * with the one that it had started under that key before.
   */
  #anew(): void {
    const sent = [...this.#open].filter(([, { isSent }]) => isSent);
    if (sent.length > 0) this.#options.onAgain(sent.map(([, { of, index }]) => ({ of, index })));
    for (const [key, open] of sent) {
      this.#open.delete(key);
      if (this.#options.enough?.aborted) this.#done.push(lost(open));
      else this.#give(open);
    }
    this.#wake();
  }

  #wake(): void {
    const changed = this.#changed;
    this.#changed = deferred();
    changed.resolve();
  }
}

/** It is not started again, and how it ended is not known. */
function lost<T>({ of, index, tries }: Open<T>): MapResult<T> {
  const how = { kind: 'by-site', cause: 'vanished', message: 'the pool has lost its record' } as const;
  return { of, index, tries, ending: { how }, stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
}

/** Endings that say nothing about the task: it is restarted, without counting as a retry. */
const EVICTED: ReadonlySet<string> = new Set(['preempted', 'node-fail', 'vanished', 'cancelled']);
