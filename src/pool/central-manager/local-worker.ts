import { spawn } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { homedir, hostname } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';
import { ownExpressions, policyValues } from '../../config/policy-keys.ts';
import type { Settings } from '../../config/settings.ts';
import { asError } from '../../errors.ts';
import { writeWhole } from '../../util/private-file.ts';
import { storedOr } from '../../util/stored-json.ts';
import { isAlive, processIdentity, type ProcessIdentity } from '../../util/process-identity.ts';
import { LEAST_KB } from '../host/full-disk.ts';
import { workerOf } from '../host/pid-files.ts';
import { freeDiskKb } from '../host/machine.ts';
import { signal } from '../host/processes.ts';
import type { PoolPlaces } from '../host/places.ts';
import type { Tokens } from '../wire/tokens.ts';
import type { WorkerConfig } from '../wire/worker-config.ts';

const LOOK_MS = 1000;
/** The minimum time between two starts of the worker, in milliseconds. */
const PATIENCE_MS = 5000;
/**
 * The minimum silence before it is considered hung, in milliseconds: it pings every four seconds, but may be delayed by
 * a slow disk.
 */
const LEAST_HUNG_MS = 15_000;
/** How many seconds it stays without a central manager and without anything to run. */
const LONE_SECONDS = 20;
/** How long to wait for it to end, in milliseconds. */
const END_MS = 3000;

export interface LocalWorkerOptions {
  readonly places: PoolPlaces;
  readonly settings: Settings;
  readonly tokens: Tokens;
  readonly logFile: string;
  readonly log: (message: string, facts?: object) => void;
  /** When it was last heard; `undefined` if it is not connected. */
  readonly heardAt: () => number | undefined;
  /** Whether the state directory was removed or replaced: a worker that is there now is another agent's. */
  readonly gone: () => boolean;
  /** Receives the reason why there is no worker here; `undefined` if there is one. */
  readonly onTrouble: (message: string | undefined) => void;
}

/**
 * This machine's worker: a separate process that outlives the central manager, so that jobs continue. A worker that is
 * already running is left alone.
 */
export class LocalWorker {
  readonly #options: LocalWorkerOptions;
  #timer: NodeJS.Timeout | undefined;
  #startedAt = Number.NEGATIVE_INFINITY;
  #heard: number | undefined;
  /** How many checks in a row have heard nothing from it. */
  #quiet = 0;
  #troubled: string | undefined;
  #started: ProcessIdentity | undefined;

  constructor(options: LocalWorkerOptions) {
    this.#options = options;
  }

  /** Keeps a worker running, with the current settings. */
  open(): void {
    const file = this.#configFile;
    // If it is not running now, the next one reads the new file when it starts.
    if (existsSync(file)) this.#configure(file);
    this.#look();
    this.#timer ??= setInterval(() => this.#look(), LOOK_MS);
  }

  /** Stops monitoring it. */
  leave(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** `idle`: nothing runs there, so it is ended too, and waited for. */
  async close(idle: boolean): Promise<void> {
    this.leave();
    // A worker that has just been started does not hold its directory yet.
    const there = this.#options.gone() ? this.#started : (workerOf(this.#options.places.workerDir) ?? this.#started);
    if (!there || !idle || !isAlive(there)) return;
    signal(there.pid, 'SIGTERM');
    for (const end = performance.now() + END_MS; isAlive(there) && performance.now() < end; )
      await new Promise((resume) => setTimeout(resume, 10));
  }

  #look(): void {
    const { places, gone } = this.#options;
    if (gone()) return;
    const there = workerOf(places.workerDir);
    if (there) return this.#watch(there);
    this.#quiet = 0;
    if (performance.now() - this.#startedAt < PATIENCE_MS) return;
    this.#startedAt = performance.now();
    try {
      // Its parent directory exists as long as the state directory does.
      if (!existsSync(places.workerDir)) mkdirSync(places.workerDir, { mode: 0o700 });
      if (freeDiskKb(places.workerDir) < LEAST_KB) return this.#trouble(`no space left in ${places.workerDir}`);
      const identity = this.#start();
      this.#started = identity;
      this.#options.log("this machine's worker started", { ...identity });
    } catch (thrown) {
      this.#trouble(asError(thrown).message);
    }
  }

  /**
   * Kills a worker that hangs; the next one adopts its jobs, which continue under their shells. Checks are counted
   * rather than time, since this process may have hung too.
   */
  #watch(there: ProcessIdentity): void {
    this.#trouble(undefined);
    const { heardAt, settings, log } = this.#options;
    const heard = heardAt();
    this.#quiet = heard === undefined || heard === this.#heard ? this.#quiet + 1 : 0;
    this.#heard = heard;
    if (this.#quiet * LOOK_MS < Math.max(LEAST_HUNG_MS, settings['gridmanager.hung_after'] * 1000)) return;
    log("this machine's worker hangs; killing it", { ...there });
    signal(there.pid, 'SIGKILL');
    this.#quiet = 0;
    this.#startedAt = Number.NEGATIVE_INFINITY;
  }

  /** Reports why there is no worker, once per reason. */
  #trouble(message: string | undefined): void {
    if (message === this.#troubled) return;
    this.#troubled = message;
    if (message !== undefined) this.#options.log("this machine's worker cannot start", { message });
    this.#options.onTrouble(message);
  }

  #start(): ProcessIdentity | undefined {
    const { logFile } = this.#options;
    const file = this.#configFile;
    this.#configure(file);
    const program = fileURLToPath(new URL('../../worker.mjs', import.meta.url));
    const log = openSync(logFile, 'a', 0o600);
    try {
      const child = spawn(process.execPath, [program, file], {
        cwd: homedir(),
        env: process.env,
        detached: true,
        stdio: ['ignore', 'ignore', log],
      });
      child.on('error', (error) => this.#options.log(error.message));
      child.unref();
      return child.pid === undefined ? undefined : processIdentity(child.pid);
    } finally {
      closeSync(log);
    }
  }

  get #configFile(): string {
    return join(this.#options.places.workerDir, 'config.json');
  }

  #configure(file: string): void {
    const now = JSON.stringify(this.#config(file));
    if (!existsSync(file) || readFileSync(file, 'utf8') !== now) writeWhole(file, now);
  }

  #config(file: string): WorkerConfig {
    const { places, settings, tokens } = this.#options;
    const known = knownToken(file);
    // A different token would mean a different worker, to which none of the running attempts were granted.
    const token =
      (known === undefined ? undefined : tokens.find(known, 0)) ??
      tokens.local() ??
      tokens.issue({ site: 'local', local: true });
    return {
      token: token.id,
      secret: token.secret,
      name: hostname(),
      site: 'local',
      dir: places.workerDir,
      socket: places.workerSocket,
      loneSeconds: LONE_SECONDS,
      sharesHome: true,
      proxies: places.proxies,
      // The same as in the ads of submitted jobs.
      fileSystemDomain: hostname(),
      limitMemory: settings['pool.limit_memory'],
      cgroups: settings['pool.cgroups'],
      runAs: settings['pool.run_as'],
      checkpointEngines: settings['pool.checkpoint_engines'],
      ...(settings['pool.execute'] === undefined ? {} : { execute: settings['pool.execute'] }),
      ...(settings['pool.cpus'] === undefined ? {} : { cpus: settings['pool.cpus'] }),
      ...(settings['pool.gpus'] === undefined ? {} : { gpus: settings['pool.gpus'] }),
      ...(settings['pool.memory'] === undefined ? {} : { memoryMb: Math.floor(settings['pool.memory'] / 2 ** 20) }),
      ...policyOf(settings),
    };
  }
}

function policyOf(settings: Settings): Partial<WorkerConfig> {
  const values = policyValues(settings);
  const { policy, polling_interval: polling, ignore_terminals: ignoreTerminals, attributes } = values;
  return {
    policy: { name: policy, expressions: ownExpressions(values) },
    polling,
    ignoreTerminals,
    idleSources: values.idle_sources,
    ...(attributes === undefined ? {} : { attributes }),
    ...(settings['pool.resources'] === undefined ? {} : { resources: settings['pool.resources'] }),
  };
}

function knownToken(file: string): string | undefined {
  if (!existsSync(file)) return undefined;
  return storedOr(z.object({ token: z.string() }), readFileSync(file, 'utf8'))?.token;
}
