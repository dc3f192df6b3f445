import { readFileSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { GryphusError } from '../errors.ts';
import type { AttrTexts } from '../job/attrs.ts';
import type { Way } from '../wayhome/home.ts';
import type { CgroupPolicy } from './cgroups.ts';
import type { Bounds } from './machine.ts';

/** What a worker is told, as JSON in a file of its own that others cannot read: its secret is in there. */
export interface WorkerConfig extends Bounds {
  readonly token: string;
  readonly secret: string;
  /** Unique in the pool; shown as `slot1@NAME`. */
  readonly name: string;
  readonly site: string;
  /** The desk's own socket for workers of this machine: plain, in a directory of its owner. Else one of the ways home. */
  readonly socket?: string;
  /** Tried in this order. */
  readonly ways?: readonly Way[];
  /** Where the ways stand now, in a file that the agent renews. */
  readonly waysFile?: string;
  /** Where the jobs' proxies are, on a machine that shares them with the agent; else each is delegated to the worker. */
  readonly proxies?: string;
  /** The worker's own directory; default: the configuration's. */
  readonly dir: string;
  /** Unix seconds at which its allocation ends. */
  readonly endsAt?: number;
  /** It ends when nothing was to do for so long. */
  readonly idleSeconds?: number;
  /** It ends when it has nothing to run and was without the agent for so long. */
  readonly loneSeconds?: number;
  /** ClassAd expressions: which jobs it takes, and which it prefers. */
  readonly start?: string;
  readonly rank?: string;
  readonly attributes?: AttrTexts;
  /** It reads the agent's own files: the worker of this very machine. */
  readonly sharesHome?: boolean;
  /** Of the machines that share a file system; without it, it shares none. */
  readonly fileSystemDomain?: string;
  /** A job that holds more memory than its slot has is ended. */
  readonly limitMemory?: boolean;
  /** Whether jobs run in control groups; default `auto`. */
  readonly cgroups?: CgroupPolicy;
}

/** Reads a worker's configuration; a GryphusError 'bad-config' says what is wrong with it. */
export function readWorkerConfig(file: string): WorkerConfig {
  const bad = (words: string) => new GryphusError('bad-config', `${file}: ${words}`);
  if ((statSync(file).mode & 0o077) !== 0) throw bad(`others can read it. Close it: chmod 600 '${file}'`);
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    throw bad('it is not JSON.');
  }
  if (typeof value !== 'object' || value === null) throw bad('it is no object.');
  const config = { dir: dirname(file), ...value } as Partial<WorkerConfig> & { readonly dir: string };
  const { token, secret, name, site } = config;
  for (const [key, text] of Object.entries({ token, secret, name, site }))
    if (typeof text !== 'string' || text === '') throw bad(`'${key}' is missing.`);
  if (config.socket === undefined && config.ways === undefined && config.waysFile === undefined)
    throw bad("neither 'socket' nor 'ways' nor 'waysFile' names a way home.");
  return { ...(config as WorkerConfig), dir: resolve(dirname(file), config.dir) };
}
