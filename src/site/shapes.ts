import * as z from 'zod';
import type { AttrTexts } from '../job/attrs.ts';
import { type AttemptKey, isAttemptKey } from '../job/ids.ts';

/*
 * What travels between the agent's own processes and to its workers, declared once: each type is inferred from the schema
 * that reads it. A key that a schema does not have is an error, so that no field is lost on the way.
 */

/** What a schema reads, as something that nobody writes to. */
export type Read<S extends z.ZodType> = Immutable<z.infer<S>>;

type Immutable<T> = T extends string | number | boolean | null | undefined
  ? T
  : { readonly [K in keyof T]: Immutable<T[K]> };

/** A key that may be left out, and is never `undefined`. */
export const maybe = z.exactOptional;
export const text = z.string();
export const texts = z.array(text);
export const flag = z.boolean();
export const count = z.int().nonnegative();
export const amount = z.number().nonnegative();
/** Unix seconds, up to the year 9999. */
export const moment = amount.max(253_402_300_799);
/** What a run can have used of a processor, seconds: more than this is no measurement. */
const processorTime = amount.max(1e12);
const kilobytes = amount.max(Number.MAX_SAFE_INTEGER);
export const stream = z.enum(['stdout', 'stderr']);

export const attemptKey = z.custom<AttemptKey>(
  (value) => typeof value === 'string' && isAttemptKey(value),
  'not an attempt key',
);
export const attemptKeys = z.array(attemptKey);

/* z.record would leave out a name `__proto__`. */
export const textsByName = z.custom<Readonly<Record<string, string>>>(
  (value) => isRecord(value) && Object.values(value).every((one) => typeof one === 'string'),
  'not a record of strings',
);
export const attrTexts = z.custom<AttrTexts>(
  (value) => isRecord(value) && Object.values(value).every((one) => typeof one === 'string' || one === null),
  'not an ad',
);

function isRecord(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Content that crosses once to a site, under its SHA-256. */
export const blob = z.strictObject({
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  bytes: count,
  /** Absolute path at home to read it from. */
  path: text,
});

/** A file for the site: carried there by content, already there, or fetched there when the attempt starts. */
export const siteFile = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('blob'), blob }),
  z.strictObject({ kind: z.literal('there'), path: text }),
  z.strictObject({ kind: z.literal('url'), url: text }),
]);

export const inputFile = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('file'),
    name: text,
    file: siteFile,
    executable: flag,
    /** The job made it itself, in an earlier attempt: it is one of its results. */
    restored: maybe(z.literal(true)),
  }),
  z.strictObject({ kind: z.literal('directory'), name: text }),
]);

/** A program's container: its image, and how it is made. */
export const containerSpec = z.strictObject({
  image: z.discriminatedUnion('kind', [
    /** With its scheme: `docker://debian:12`. */
    z.strictObject({ kind: z.literal('registry'), name: text }),
    /** On the node: absolute, or in the sandbox. A .sif file, an archive, or a directory. */
    z.strictObject({ kind: z.literal('there'), path: text }),
    z.strictObject({ kind: z.literal('file'), name: text, file: siteFile }),
  ]),
  /** Of docker itself, or of what takes its place. */
  docker: flag,
  /** The image's entry point is started, with the program as its first argument. */
  keepEntrypoint: flag,
  /** Where the sandbox is in the container; without it, where it is outside. */
  targetDir: maybe(text),
  /** As `docker_network_type` has it. */
  network: maybe(text),
  alwaysPull: flag,
  /** Paths outside of the sandbox that it sees, where they are. */
  binds: texts,
});

/** A program with all that it starts with, wherever it runs. */
export const program = z.strictObject({
  executable: siteFile,
  args: texts,
  env: textsByName,
  /** Its standard input; without it, nothing to read. */
  stdin: maybe(siteFile),
  inputs: z.array(inputFile),
  /** stdout and stderr go into one stream, in order. */
  joinStderr: flag,
  /** What it runs in. Only the pool can: `executable` that is `there` is then the image's own, '' what the image starts by itself. */
  container: maybe(containerSpec),
  /** The job's X509_USER_PROXY is the proxy that was delegated under this name. */
  proxy: maybe(text),
  /** The largest core file that it may leave, in blocks of 512 bytes, or `unlimited`: what `ulimit -c` takes (POSIX.1-2017). */
  core: maybe(z.string().regex(/^(\d{1,18}|unlimited)$/)),
  /** Directory at the site to run in instead of the attempt's own (no file transfer). */
  cwd: maybe(text),
  /** How to run it, instead, on a machine that shares the file system of home: there, without any transfer. */
  shared: maybe(z.strictObject({ cwd: text, executable: text, stdin: maybe(text) })),
});

export const siteCause = z.enum([
  'timeout',
  'node-fail',
  'preempted',
  /** The site put it back into its queue after it had started. */
  'requeued',
  /** The site has it, and can never start it as it is asked for. */
  'unsatisfiable',
  'out-of-memory',
  'cancelled',
  'boot-fail',
  'deadline',
  'cannot-start',
  /** Its container's image is not there, or cannot be fetched. */
  'no-image',
  'vanished',
]);

export const usage = z.strictObject({
  userCpuSeconds: maybe(processorTime),
  systemCpuSeconds: maybe(processorTime),
  maxRssKb: maybe(kilobytes),
  diskKb: maybe(kilobytes),
});

/** The site ended it, or cannot say how it ended: never taken for a success. */
const endedBySite = z.strictObject({
  kind: z.literal('by-site'),
  cause: siteCause,
  message: text,
  /** It was asked to end and did, within its time: what it left is as it wanted to leave it. */
  yielded: maybe(z.literal(true)),
});

/** How an attempt ended. */
export const ending = z.strictObject({
  how: z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('exited'), code: z.int() }),
    z.strictObject({ kind: z.literal('signaled'), signal: z.int(), coreDumped: maybe(flag) }),
    endedBySite,
  ]),
  /** Unix seconds by our clock, where the site's is known to be off. */
  startedAt: maybe(moment),
  endedAt: maybe(moment),
  host: maybe(text),
  usage: maybe(usage),
  stdoutBytes: maybe(count),
  stderrBytes: maybe(count),
  /** An exit status is known as well as the site's cause (killed at the time limit with 143, say). */
  message: maybe(text),
});

/** What a site says of one attempt. Total: a word that nobody knows is `unclear`, never an end. */
export const report = z.discriminatedUnion('is', [
  z.strictObject({ key: attemptKey, is: z.literal('prepared') }),
  z.strictObject({ key: attemptKey, is: z.literal('queued'), batchId: maybe(text), why: maybe(text) }),
  z.strictObject({ key: attemptKey, is: z.literal('held-by-site'), batchId: maybe(text), why: text }),
  z.strictObject({
    key: attemptKey,
    is: z.literal('running'),
    batchId: maybe(text),
    host: maybe(text),
    since: maybe(moment),
  }),
  /** It has its place and would start, but for the leave that its record wants. */
  z.strictObject({ key: attemptKey, is: z.literal('asking'), batchId: maybe(text), host: maybe(text) }),
  z.strictObject({ key: attemptKey, is: z.literal('suspended'), batchId: maybe(text), why: maybe(text) }),
  /** The batch system does not have it and its lock was never taken: it can be prepared and committed again. */
  z.strictObject({ key: attemptKey, is: z.literal('lost'), why: text }),
  /** `noFiles`: beside its streams it left nothing that could be asked for. */
  z.strictObject({ key: attemptKey, is: z.literal('ended'), ...ending.shape, noFiles: maybe(z.literal(true)) }),
  z.strictObject({ key: attemptKey, is: z.literal('unclear'), batchId: maybe(text), message: text }),
]);

/** Why a site would not do it for this one job. */
export const refusal = z.strictObject({
  /**
   * `never`: will always fail, hold the job. `later`: a passing limit (queue full, site busy), the job waits here as idle.
   * `gone`: the site does not know the key (swept, or the site lost its disk): prepare again.
   */
  kind: z.enum(['never', 'later', 'gone']),
  code: z.enum([
    'site-refused',
    'input-missing',
    'disk-full',
    'site-busy',
    /** It takes no more jobs of ours now: a limit of jobs is reached. Always `later`. */
    'site-full',
    /** Its content is on its way there, and goes on. Always `later`. */
    'arriving',
    'output-missing',
    'unknown-key',
    'already-started',
  ]),
  /** One sentence, with the site's own words. */
  message: text,
});

export const outcome = z.discriminatedUnion('ok', [
  z.strictObject({ ok: z.literal(true), batchId: maybe(text) }),
  z.strictObject({ ok: z.literal(false), refusal }),
]);

export const capacity = z.strictObject({ cpus: maybe(amount), freeCpus: maybe(amount) });

export const fetchRequest = z.strictObject({
  key: attemptKey,
  /** Names in the attempt's directory; `new`: all files at its top that were not there at the start (HTCondor's default). */
  outputs: z.union([z.literal('new'), texts]),
  /** Names at the top of the directory that the job was given: of `new` files, none of these is one. */
  given: maybe(texts),
  stdout: flag,
  stderr: flag,
  /** Absolute, at home, the attempt's own; what is there already and whole is not sent again. */
  into: text,
});

export const fetchedFile = z.strictObject({
  /** As the job named it, relative; directories are given by their files. */
  name: text,
  kind: z.enum(['output', 'stdout', 'stderr']),
  /** Absolute, at home. */
  path: text,
  bytes: count,
  executable: flag,
  /** Permission bits that the job chose for it; absent: those that files get by themselves. */
  mode: maybe(count.max(0o777)),
});

/** `loop`: a link to a directory that the link itself is in. `unasked`: the site offered it, and nobody asked for it. */
export const oddOutput = z.strictObject({
  /** In the attempt's directory. */
  name: text,
  is: z.enum(['pipe', 'socket', 'device', 'loop', 'unasked']),
});

export const fetchOutcome = z.discriminatedUnion('ok', [
  z.strictObject({
    ok: z.literal(true),
    files: z.array(fetchedFile),
    /** The site lost the results after it had told of the end: that is what the end comes to. */
    lost: maybe(endedBySite),
  }),
  z.strictObject({
    ok: z.literal(false),
    refusal,
    /** Named outputs that the job did not make. */
    missing: texts,
    /** What stands among the named outputs and has no content that could be brought home. */
    odd: maybe(z.array(oddOutput)),
    /** What came home all the same. */
    files: maybe(z.array(fetchedFile)),
  }),
]);
