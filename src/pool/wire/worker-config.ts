import { readFileSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import * as z from 'zod';
import { GryphusError } from '../../errors.ts';
import { attrTexts } from '../../job/schema.ts';
import { amount, amounts, flag, maybe, type Read, text, texts, textsByName } from '../../util/schema.ts';
import { WAY } from '../../reverse-connection/home.ts';

/** `auto`: cgroup v2, if the worker may create groups; `always`: cgroup v1 too. */
const CGROUP_POLICIES = ['auto', 'always', 'never'] as const;
export type CgroupPolicy = (typeof CGROUP_POLICIES)[number];

const filled = text.min(1);

/** A worker's configuration: a JSON file that others must not be able to read, since it contains the secret. */
const workerConfig = z.strictObject({
  token: filled,
  secret: filled,
  /** Unique in the pool; shown as `slot1@NAME`. */
  name: filled,
  site: filled,
  /**
   * The central manager's unencrypted socket for workers on this machine, in a private directory. Otherwise, one of the
   * reverse connections is used.
   */
  socket: maybe(text),
  /** Reverse connections, tried in this order. */
  ways: maybe(z.array(WAY)),
  /** A file with the current reverse connections, which the agent renews. */
  waysFile: maybe(text),
  /**
   * The directory of the jobs' proxies, on a machine that shares them with the agent; otherwise each is delegated to
   * the worker.
   */
  proxies: maybe(text),
  /** The worker's own directory; default: the one that contains the configuration. */
  dir: text,
  /** The resources of the machine that it may use; default: all. `diskKb`: the maximum disk space. */
  cpus: maybe(amount),
  memoryMb: maybe(amount),
  diskKb: maybe(amount),
  gpus: maybe(amount),
  /** The worker has only a part of its node, as a batch job does, and shares the rest with others. */
  part: maybe(flag),
  /** Unix seconds when its allocation ends. */
  endsAt: maybe(amount),
  /** It ends after having nothing to do for this many seconds. */
  idleSeconds: maybe(amount),
  /** It ends after this many seconds without the agent, if it has nothing to run. */
  loneSeconds: maybe(amount),
  /** ClassAd expressions: which jobs it accepts (START), and which it prefers (RANK). */
  start: maybe(text),
  rank: maybe(text),
  attributes: maybe(attrTexts),
  /** The name of a ready-made policy, and expressions that replace some of its own. */
  policy: maybe(z.strictObject({ name: text, expressions: textsByName })),
  /** Seconds between two evaluations of the policy. */
  polling: maybe(z.number().positive()),
  /** Where signs of the owner are looked for; default: everywhere. */
  idleSources: maybe(texts),
  /** Terminals that show nothing of the owner. */
  ignoreTerminals: maybe(texts),
  /** Further resources by name, as HTCondor's MACHINE_RESOURCE_name. */
  resources: maybe(amounts),
  /** It can read the agent's own files: the worker on the agent's machine. */
  sharesHome: maybe(flag),
  /** The name of the machines that share a file system; without it, the worker shares none. */
  fileSystemDomain: maybe(text),
  /** Jobs that use more memory than their slot has are ended. */
  limitMemory: maybe(flag),
  /** Whether jobs run in cgroups; default `auto`. */
  cgroups: maybe(z.enum(CGROUP_POLICIES)),
  /** Under which accounts a worker of root runs jobs; default `owner`. */
  runAs: maybe(filled),
  /** What may write and restore the images of jobs; default: our own engine. */
  checkpointEngines: maybe(texts),
  /** The directory of their sandboxes. */
  execute: maybe(filled),
});
export type WorkerConfig = Read<typeof workerConfig>;

/** Reads a worker's configuration. Throws a GryphusError 'bad-config' that says what is wrong with it. */
export function readWorkerConfig(file: string): WorkerConfig {
  const bad = (message: string) => new GryphusError('bad-config', `${file}: ${message}`);
  if ((statSync(file).mode & 0o077) !== 0) throw bad(`others can read it. Run: chmod 600 '${file}'`);
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    throw bad('it is not JSON.');
  }
  if (typeof value !== 'object' || value === null) throw bad('it is not an object.');
  const { data, error } = workerConfig.safeParse({ dir: '.', ...value });
  if (error) throw bad(error.issues.map(({ path, message }) => `'${path.join('.')}': ${message}`).join('; '));
  if (data.socket === undefined && data.ways === undefined && data.waysFile === undefined)
    throw bad("neither 'socket' nor 'ways' nor 'waysFile' names a reverse connection.");
  return { ...data, dir: resolve(dirname(file), data.dir) };
}
