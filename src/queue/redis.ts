import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis, type RedisOptions } from 'ioredis';
import { asError, GryphusError } from '../errors.ts';
import { goneCheck } from '../util/marked-dir.ts';
import type { QueueOptions } from './types.ts';
import { diskIsFull } from './redis-disk.ts';
import { unfitness } from './redis-fit.ts';
import { serverPlace } from './redis-place.ts';
import { attended } from './redis-unattended.ts';
import { ensureServer, serverState, SLOW_MS, stopServer, tellServer } from './redis-server.ts';
import { type ScriptName, script } from './script.ts';

/** Prefix of one agent's keys, in a Redis that others may use too. */
const PREFIX = 'gryphus:';
const PATIENCE_MS = 2000;
/** Whoever ends all at a shutdown may not know a server that this process started so short a time before it was told; milliseconds. */
const SHUTDOWN_MS = 10_000;
/** Idempotent scripts, which can safely be sent again. */
const REPEATABLE: ReadonlySet<ScriptName> = new Set([
  'drop',
  'find',
  'heads',
  'intern',
  'incarnation',
  'next',
  'next-candidates',
  'publish',
  'retire',
  'skip',
  'stage',
  'summaries',
  'trim',
  'upgrade',
]);

type Options = Omit<RedisOptions, 'replyMapping'>;

export interface BullConnection {
  readonly maxRetriesPerRequest: null;
  readonly retryStrategy: (times: number) => number | null;
  readonly path?: string;
  readonly url?: string;
}

/** Connections to one Redis, private or not. Every rejection is a GryphusError. */
export class Connection {
  readonly prefix = PREFIX;
  readonly where: string;
  readonly #options: QueueOptions;
  readonly #url: string | undefined;
  readonly #main: Redis;
  readonly #others = new Set<Redis>();
  #idle: Redis[] = [];
  #closed = false;
  readonly #leaving: AbortSignal;
  #reviving: Promise<unknown> | undefined;
  /** When this process last started the server, by the monotonic clock; milliseconds. */
  #startedAt = Number.NEGATIVE_INFINITY;
  /** Calls that wait for the server, which fail when it is away and we are told to end. */
  readonly #waiting = new Set<(error: GryphusError) => void>();
  readonly #gone: () => boolean;

  private constructor(options: QueueOptions, url: string | undefined) {
    this.#options = options;
    this.#url = url;
    this.where = url === undefined ? serverPlace(options).socket : url.replace(/\/\/[^@/]*@/, '//');
    this.#gone = goneCheck(options.stateDir);
    this.#leaving = options.leaving ?? new AbortController().signal;
    // Any number of calls may wait at once.
    setMaxListeners(0, this.#leaving);
    this.#leaving.addEventListener('abort', this.#leave);
    this.#main = this.#client(this.#patient());
    this.#main.on('close', () => {
      if (this.#leaving.aborted) this.#giveUp();
      else this.#revive();
    });
  }

  static async open(options: QueueOptions): Promise<Connection> {
    const url = process.env['REDIS_URL'] || options.url;
    const starts = options.start !== 'never' && options.start !== 'await';
    const started = url === undefined && starts && (await ensureServer(options, options.leaving));
    const connection = new Connection(options, url);
    if (started) connection.#startedAt = performance.now();
    // Whoever restarts it also ends it.
    if (options.start === 'keep') connection.handOver();
    try {
      if (url === undefined && options.start === 'never') await connection.#refuseAway();
      connection.#main.connect().catch(() => undefined);
      await connection.#ready(connection.#main);
      if (url !== undefined) await connection.#refuseUnfit();
    } catch (thrown) {
      await connection.close();
      throw thrown;
    }
    return connection;
  }

  /** For idempotent commands: if the connection is lost in the meantime, they are sent again once it is back. */
  async run<T>(use: (redis: Redis) => Promise<T>): Promise<T> {
    const end = Date.now() + this.#patience;
    for (;;) {
      try {
        return await this.#once(use);
      } catch (thrown) {
        const lost =
          thrown instanceof GryphusError && thrown.code === 'queue-unavailable' && thrown.cause !== undefined;
        if (!lost || this.#closed || this.#leaving.aborted || Date.now() > end) throw thrown;
        await sleep(20);
      }
    }
  }

  /** Runs a script by its digest, or sends its text if the server does not have it. */
  async script(name: ScriptName, args: readonly (string | number)[]): Promise<unknown> {
    const { sha1, text } = script(name, this.prefix);
    const use = async (redis: Redis): Promise<unknown> => {
      try {
        return await redis.call('EVALSHA', [sha1, 0, ...args]);
      } catch (thrown) {
        if (!asError(thrown).message.startsWith('NOSCRIPT')) throw thrown;
        return redis.call('EVAL', [text, 0, ...args]);
      }
    };
    return REPEATABLE.has(name) ? this.run(use) : this.#once(use);
  }

  /** For a call that may block at the server: it gets a connection of its own, which `signal` closes. */
  async blocking<T>(use: (redis: Redis) => Promise<T>, signal?: AbortSignal): Promise<T> {
    const redis = this.#idle.pop() ?? this.#extra();
    const cut = () => hangUp(redis);
    signal?.addEventListener('abort', cut, { once: true });
    try {
      await this.#ready(redis);
      const result = await use(redis);
      if (!signal?.aborted) this.#idle.push(redis);
      return result;
    } catch (thrown) {
      hangUp(redis);
      this.#others.delete(redis);
      throw this.#wrapped(thrown);
    } finally {
      signal?.removeEventListener('abort', cut);
    }
  }

  /** For BullMQ, which keeps connections of its own. */
  bullOptions(): BullConnection {
    const options = { maxRetriesPerRequest: null, retryStrategy: this.#backOff };
    return this.#url === undefined ? { ...options, path: this.where } : { ...options, url: this.#url };
  }

  get #patience(): number {
    return this.#options.patienceMs ?? PATIENCE_MS;
  }

  /** A Redis of the user's own may be of a kind that cannot hold a queue. */
  async #refuseUnfit(): Promise<void> {
    const unfit = unfitness(await this.#main.info());
    if (unfit === undefined) return;
    throw new GryphusError('bad-config', `The Redis at ${this.where} cannot hold the queue: ${unfit.why}.`, {
      suggestions: [unfit.remedy],
    });
  }

  /** Fails at once if nothing listens at the socket, or the process does not answer. */
  async #refuseAway(): Promise<void> {
    const state = await serverState(this.#options, SLOW_MS);
    if (state === 'absent') throw this.#unavailable('it is not running');
    if (state === 'silent') throw this.#unavailable('its process does not answer');
  }

  async #once<T>(use: (redis: Redis) => Promise<T>): Promise<T> {
    await this.#ready(this.#main);
    try {
      return await this.unlessAway(use(this.#main));
    } catch (thrown) {
      throw this.#wrapped(thrown);
    }
  }

  /** For what waits for the server without limit, as BullMQ does: rejects when it is away and we are told to end. */
  async unlessAway<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#waiting.add(reject);
      void work.then(resolve, reject).finally(() => this.#waiting.delete(reject));
      if (this.#leaving.aborted && this.#main.status !== 'ready') this.#giveUp();
    });
  }

  /** Whether it is a Redis that others may use too, which we neither start nor configure. */
  get shared(): boolean {
    return this.#url !== undefined;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** The Scheduler looks after the server that this process may have started: it stays. */
  handOver(): void {
    if (this.#url === undefined) attended(this.where);
  }

  readonly #leave = (): void => {
    if (this.#main.status !== 'ready') this.#giveUp();
    // Where `close` is not waited for.
    if (this.#hasJustStarted()) process.once('exit', () => tellServer(this.#options));
  };

  #hasJustStarted(): boolean {
    return performance.now() - this.#startedAt < SHUTDOWN_MS;
  }

  #giveUp(): void {
    for (const reject of this.#waiting) reject(this.#unavailable('it is not waited for any more'));
  }

  /** Closes all connections; no server is started afterwards. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const one of [this.#main, ...this.#others]) hangUp(one);
    this.#idle = [];
    this.#leaving.removeEventListener('abort', this.#leave);
    await this.#reviving;
    if (this.#leaving.aborted && this.#hasJustStarted()) await stopServer(this.#options).catch(() => false);
  }

  #patient(): Options {
    return {
      lazyConnect: true,
      enableOfflineQueue: false,
      // A script that was sent may have run: only its caller knows whether it can be sent again.
      autoResendUnfulfilledCommands: false,
      // Pending commands fail at once when the connection is lost.
      maxRetriesPerRequest: 0,
      retryStrategy: this.#backOff,
    };
  }

  #client(options: Options): Redis {
    const redis = this.#url === undefined ? new Redis(this.where, options) : new Redis(this.#url, options);
    // Reported by the calls that fail.
    redis.on('error', () => undefined);
    redis.on('connect', () => {
      if (this.#url === undefined && this.#gone()) hangUp(redis);
    });
    return redis;
  }

  /** Not to the server of a successor whose state directory stands where ours was. */
  readonly #backOff = (times: number): number | null =>
    this.#closed || (this.#url === undefined && this.#gone()) ? null : Math.min(20 * 2 ** Math.min(times, 7), 1000);

  #extra(): Redis {
    const redis = this.#client({ ...this.#patient(), retryStrategy: null });
    this.#others.add(redis);
    redis.connect().catch(() => undefined);
    return redis;
  }

  async #ready(redis: Redis): Promise<void> {
    if (redis.status === 'ready') return;
    const patience = this.#patience;
    await new Promise<void>((resolve, reject) => {
      const settle = (error?: GryphusError) => {
        clearTimeout(timer);
        this.#leaving.removeEventListener('abort', left);
        redis.off('ready', ready);
        redis.off('end', ended);
        if (error) reject(error);
        else resolve();
      };
      const ready = () => settle();
      const ended = () => settle(this.#unavailable('its connection ended'));
      const left = () => settle(this.#unavailable('it is not waited for any more'));
      const tooLong = (ms: number) => settle(this.#unavailable(`no answer in ${ms / 1000} s`));
      let timer = setTimeout(() => {
        if (redis.status !== 'connect') tooLong(patience);
        else timer = setTimeout(() => tooLong(Math.max(patience, SLOW_MS)), SLOW_MS - patience);
      }, patience);
      this.#leaving.addEventListener('abort', left, { once: true });
      redis.on('ready', ready);
      redis.on('end', ended);
      if (redis.status === 'end') ended();
      else if (this.#leaving.aborted) left();
    });
  }

  #revive(): void {
    if (this.#closed || this.#reviving || this.#url !== undefined || this.#options.start !== 'keep') return;
    // If the state directory is gone, there is nothing to serve; at a shutdown, all are told to end.
    if (this.#gone() || this.#leaving.aborted) return;
    this.#reviving = ensureServer(this.#options, this.#leaving)
      .then((started) => {
        if (started) this.#startedAt = performance.now();
        this.handOver();
      })
      // The next 'close' event tries again, because the client keeps reconnecting.
      .catch(() => undefined)
      .finally(() => {
        this.#reviving = undefined;
      });
  }

  #unavailable(why: string, cause?: Error): GryphusError {
    if (this.#url === undefined && diskIsFull(this.#options.stateDir)) return full(this.#options.stateDir, cause);
    return new GryphusError('queue-unavailable', `The queue's Redis at ${this.where} is not available (${why}).`, {
      suggestions: [
        this.#url === undefined ? 'Start it: gryphus up' : 'Check that it is running, and check REDIS_URL.',
      ],
      ...(cause && { cause }),
    });
  }

  #wrapped(thrown: unknown): unknown {
    if (thrown instanceof GryphusError) return thrown;
    const error = asError(thrown);
    if (/^MISCONF|No space left/i.test(error.message)) return full(this.#options.stateDir, error);
    if (/^(OOM|READONLY|LOADING|BUSY|NOAUTH|WRONGPASS|NOPERM)/.test(error.message))
      return this.#unavailable(error.message, error);
    const lost = /Connection is closed|Stream isn't writeable|ECONN|EPIPE|ENOENT|max retries/i.test(error.message);
    return lost ? this.#unavailable('the connection was lost', error) : error;
  }
}

/**
 * Once. ioredis waits for the closing of a connection's socket with a timer of 2 s, and a second call after that starts
 * one that nothing ends: the process would live on for so long.
 */
function hangUp(redis: Redis): void {
  if (redis.status !== 'end') redis.disconnect();
}

function full(stateDir: string, cause?: Error): GryphusError {
  return new GryphusError('disk-full', `The queue cannot be written: no space left on the disk of ${stateDir}.`, {
    suggestions: ['Free some space there; nothing that was acknowledged is lost.'],
    ...(cause && { cause }),
  });
}
