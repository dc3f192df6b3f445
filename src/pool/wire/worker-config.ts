import { readFileSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import * as z from 'zod';
import { GryphusError } from '../../errors.ts';
import { amount, attrTexts, flag, maybe, type Read, text } from '../../site/shapes.ts';
import { WAY } from '../../reverse-connection/home.ts';

/** `auto`: groups of the second generation, where the worker may make such; `always`: of the first, too. */
const CGROUP_POLICIES = ['auto', 'always', 'never'] as const;
export type CgroupPolicy = (typeof CGROUP_POLICIES)[number];

const filled = text.min(1);

/** What a worker is told, as JSON in a file of its own that others cannot read: its secret is in there. */
const workerConfig = z.strictObject({
  token: filled,
  secret: filled,
  /** Unique in the pool; shown as `slot1@NAME`. */
  name: filled,
  site: filled,
  /** The central manager's own socket for workers of this machine: plain, in a directory of its owner. Else one of the reverse connections. */
  socket: maybe(text),
  /** Tried in this order. */
  ways: maybe(z.array(WAY)),
  /** Where the ways stand now, in a file that the agent renews. */
  waysFile: maybe(text),
  /** Where the jobs' proxies are, on a machine that shares them with the agent; else each is delegated to the worker. */
  proxies: maybe(text),
  /** The worker's own directory; default: the configuration's. */
  dir: text,
  /** Of the machine, what it may use; default: all that is there. `diskKb`: the most of its disk. */
  cpus: maybe(amount),
  memoryMb: maybe(amount),
  diskKb: maybe(amount),
  gpus: maybe(amount),
  /** Of its node the worker has a part, as a job of a batch system has: others are there, too. */
  part: maybe(flag),
  /** Unix seconds at which its allocation ends. */
  endsAt: maybe(amount),
  /** It ends when nothing was to do for so long. */
  idleSeconds: maybe(amount),
  /** It ends when it has nothing to run and was without the agent for so long. */
  loneSeconds: maybe(amount),
  /** ClassAd expressions: which jobs it takes, and which it prefers. */
  start: maybe(text),
  rank: maybe(text),
  attributes: maybe(attrTexts),
  /** It reads the agent's own files: the worker of this very machine. */
  sharesHome: maybe(flag),
  /** Of the machines that share a file system; without it, it shares none. */
  fileSystemDomain: maybe(text),
  /** A job that holds more memory than its slot has is ended. */
  limitMemory: maybe(flag),
  /** Whether jobs run in control groups; default `auto`. */
  cgroups: maybe(z.enum(CGROUP_POLICIES)),
});
export type WorkerConfig = Read<typeof workerConfig>;

/** Reads a worker's configuration; a GryphusError 'bad-config' says what is wrong with it. */
export function readWorkerConfig(file: string): WorkerConfig {
  const bad = (message: string) => new GryphusError('bad-config', `${file}: ${message}`);
  if ((statSync(file).mode & 0o077) !== 0) throw bad(`others can read it. Close it: chmod 600 '${file}'`);
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    throw bad('it is not JSON.');
  }
  if (typeof value !== 'object' || value === null) throw bad('it is no object.');
  const { data, error } = workerConfig.safeParse({ dir: '.', ...value });
  if (error) throw bad(error.issues.map(({ path, message }) => `'${path.join('.')}': ${message}`).join('; '));
  if (data.socket === undefined && data.ways === undefined && data.waysFile === undefined)
    throw bad("neither 'socket' nor 'ways' nor 'waysFile' names a reverse connection.");
  return { ...data, dir: resolve(dirname(file), data.dir) };
}
