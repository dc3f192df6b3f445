import * as z from 'zod';
import { attemptKey } from '../job/schema.ts';
import { amount, count, flag, maybe, moment, text, texts, textsByName } from '../util/schema.ts';

/*
 * Data that passes between the agent's own processes and to its workers, declared once: each type is inferred from the
 * schema that reads it. An unknown key is an error, so that no field is lost on the way.
 */

/** Processor time of a run in seconds: anything beyond this cannot be a real measurement. */
const processorTime = amount.max(1e12);
const kilobytes = amount.max(Number.MAX_SAFE_INTEGER);
export const stream = z.enum(['stdout', 'stderr']);

/** Content that is sent to a site once, under its SHA-256. */
export const blob = z.strictObject({
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  bytes: count,
  /** Where to read it at home, absolute. */
  path: text,
});

/** A file for the site: sent by content, already there, or fetched there when the attempt starts. */
export const siteFile = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('blob'), blob }),
  z.strictObject({ kind: z.literal('there'), path: text }),
  z.strictObject({ kind: z.literal('url'), url: text }),
]);

/** In a parallel job of the pool: the numbers of the nodes that get it; absent: all of them. */
const inputNodes = maybe(z.array(count));

export const inputFile = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('file'),
    name: text,
    file: siteFile,
    executable: flag,
    /** A result that the job itself made in an earlier attempt. */
    restored: maybe(z.literal(true)),
    nodes: inputNodes,
  }),
  z.strictObject({ kind: z.literal('directory'), name: text, nodes: inputNodes }),
]);

/** A program's container: its image and how to create it. */
export const containerSpec = z.strictObject({
  image: z.discriminatedUnion('kind', [
    /** With its scheme, such as `docker://debian:12`. */
    z.strictObject({ kind: z.literal('registry'), name: text }),
    /** On the node: an absolute path, or one in the sandbox. A .sif file, an archive, or a directory. */
    z.strictObject({ kind: z.literal('there'), path: text }),
    z.strictObject({ kind: z.literal('file'), name: text, file: siteFile }),
  ]),
  /** Requests docker itself, or its replacement. */
  docker: flag,
  /** Runs the image's entry point, with the program as its first argument. */
  keepEntrypoint: flag,
  /** Where the container sees the sandbox; if absent, at the same path as outside. */
  targetDir: maybe(text),
  /** As in `docker_network_type`. */
  network: maybe(text),
  alwaysPull: flag,
  /** Paths outside the sandbox that it sees at the same place. */
  binds: texts,
});

/** A program with everything that it starts with, wherever it runs. */
export const program = z.strictObject({
  executable: siteFile,
  args: texts,
  env: textsByName,
  /** Its standard input; if absent, empty. */
  stdin: maybe(siteFile),
  inputs: z.array(inputFile),
  /** stdout and stderr go into one stream, in order. */
  joinStderr: flag,
  /**
   * Only the pool can run containers. An `executable` that is `there` is then in the image; '' means the image's own
   * entry point.
   */
  container: maybe(containerSpec),
  /** The delegated proxy that becomes the job's X509_USER_PROXY. */
  proxy: maybe(text),
  /**
   * The largest core file that it may leave, in blocks of 512 bytes, or `unlimited`: an argument of `ulimit -c`
   * (POSIX.1-2017).
   */
  core: maybe(z.string().regex(/^(\d{1,18}|unlimited)$/)),
  /** The directory at the site to run in instead of the attempt's own (no file transfer). */
  cwd: maybe(text),
  /** How to run it instead on a machine that shares the home's file system: there, without any transfer. */
  shared: maybe(z.strictObject({ cwd: text, executable: text, stdin: maybe(text) })),
});

export const siteCause = z.enum([
  'timeout',
  'node-fail',
  'preempted',
  /** The site put it back into its queue after it had started. */
  'requeued',
  /** The site has it, but can never start it with these requests. */
  'unsatisfiable',
  'out-of-memory',
  'cancelled',
  'boot-fail',
  'deadline',
  'cannot-start',
  /** Its container's image does not exist or cannot be fetched. */
  'no-image',
  'vanished',
]);

/** On whose account the pool preempted it; `lease`: its worker heard nothing from us for too long. */
export const preemptedBy = z.enum(['owner', 'policy', 'rank', 'priority', 'user', 'drain', 'lease']);

export const usage = z.strictObject({
  userCpuSeconds: maybe(processorTime),
  systemCpuSeconds: maybe(processorTime),
  maxRssKb: maybe(kilobytes),
  diskKb: maybe(kilobytes),
});

/** The site ended it, or cannot say how it ended; this never counts as a success. */
const endedBySite = z.strictObject({
  kind: z.literal('by-site'),
  cause: siteCause,
  message: text,
  /** It ended in time when asked to, so the files it left are as it intended. */
  yielded: maybe(z.literal(true)),
  /** The CheckpointPlatform on which the image that it left can go on. */
  platform: maybe(text),
  by: maybe(preemptedBy),
});

/** How an attempt ended. */
export const ending = z.strictObject({
  how: z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('exited'), code: z.int() }),
    z.strictObject({ kind: z.literal('signaled'), signal: z.int(), coreDumped: maybe(flag) }),
    endedBySite,
  ]),
  /** In Unix seconds of our clock, if the site's is known to be off. */
  startedAt: maybe(moment),
  endedAt: maybe(moment),
  host: maybe(text),
  usage: maybe(usage),
  stdoutBytes: maybe(count),
  stderrBytes: maybe(count),
  /** The exit status that is known besides the site's cause (such as 143 after a time limit). */
  message: maybe(text),
});

/** One node of a parallel job in the pool. */
export const nodeReport = z.strictObject({
  number: count,
  /** HTCondor's name of its slot. */
  slot: text,
  startedAt: maybe(moment),
  endedAt: maybe(moment),
  /** How its program ended by itself; absent if it was ended with its job. */
  exitCode: maybe(z.int()),
  signal: maybe(z.int()),
  usage: maybe(usage),
});

/** What a site says about one attempt. Total: an unknown word is `unclear`, never an end. */
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
    nodes: maybe(z.array(nodeReport)),
    /** How often the site had run it before in the same attempt, and ended it; absent for the first. */
    run: maybe(count),
  }),
  /** It has its place and would start, but its record requires leave. */
  z.strictObject({ key: attemptKey, is: z.literal('asking'), batchId: maybe(text), host: maybe(text) }),
  z.strictObject({ key: attemptKey, is: z.literal('suspended'), batchId: maybe(text), why: maybe(text) }),
  /** The batch system does not have it and its lock was never taken: it can be prepared and committed again. */
  z.strictObject({ key: attemptKey, is: z.literal('lost'), why: text }),
  /** `noFiles`: apart from its streams, it left nothing to fetch. `streams`: both, whole, in base64; '' if it is empty. */
  z.strictObject({
    key: attemptKey,
    is: z.literal('ended'),
    ...ending.shape,
    nodes: maybe(z.array(nodeReport)),
    run: maybe(count),
    noFiles: maybe(z.literal(true)),
    streams: maybe(z.strictObject({ stdout: text, stderr: text })),
  }),
  z.strictObject({ key: attemptKey, is: z.literal('unclear'), batchId: maybe(text), message: text }),
]);

/** Why a site would not do it for this one job. */
export const refusal = z.strictObject({
  /**
   * `never`: will always fail, hold the job. `later`: a temporary limit (queue full, site busy), the job waits here as
   * idle. `gone`: the site does not know the key (swept, or the site lost its disk): prepare again.
   */
  kind: z.enum(['never', 'later', 'gone']),
  code: z.enum([
    'site-refused',
    'input-missing',
    'disk-full',
    'site-busy',
    /** It takes no more of our jobs now because a limit is reached. Always `later`. */
    'site-full',
    /** Its content is still on its way there. Always `later`. */
    'arriving',
    'output-missing',
    'unknown-key',
    'already-started',
  ]),
  /** One sentence, including the site's own words. */
  message: text,
});

export const outcome = z.discriminatedUnion('ok', [
  z.strictObject({ ok: z.literal(true), batchId: maybe(text) }),
  z.strictObject({ ok: z.literal(false), refusal }),
]);

export const capacity = z.strictObject({ cpus: maybe(amount), freeCpus: maybe(amount) });

export const fetchRequest = z.strictObject({
  key: attemptKey,
  /**
   * Names in the attempt's directory; `new`: all files at its top that were not there at the start (HTCondor's
   * default).
   */
  outputs: z.union([z.literal('new'), texts]),
  /** Files that are wanted as well, if there are any: patterns of their names. */
  patterns: maybe(texts),
  /** Names of the job's own inputs at the top of the directory, which `new` and `patterns` leave out. */
  given: maybe(texts),
  stdout: flag,
  stderr: flag,
  /** The attempt's own directory at home, absolute; complete files there are not sent again. */
  into: text,
});

/** A followed file of a running job, and how large it is. */
export const fileSize = z.strictObject({ name: text, bytes: count });
/** Where the wanted bytes of such a file begin. */
export const wantedPiece = z.strictObject({ name: text, offset: count });

export const fetchedFile = z.strictObject({
  /** As the job named it, relative; a directory is represented by its files. */
  name: text,
  kind: z.enum(['output', 'stdout', 'stderr']),
  /** Absolute, at home. */
  path: text,
  bytes: count,
  executable: flag,
  /** Permission bits that the job set; absent if they are the default ones. */
  mode: maybe(count.max(0o777)),
  /** The node of a parallel job in the pool that made it. */
  node: maybe(count),
});

/** `loop`: a link to a directory that contains the link, or links by which too many files are found (20,000). `unasked`: the site offered it, but it was not requested. */
export const oddOutput = z.strictObject({
  /** Relative to the attempt's directory. */
  name: text,
  is: z.enum(['pipe', 'socket', 'device', 'loop', 'unasked']),
});

export const fetchOutcome = z.discriminatedUnion('ok', [
  z.strictObject({
    ok: z.literal(true),
    files: z.array(fetchedFile),
    /** The site lost the results after reporting the end; this is the ending that counts instead. */
    lost: maybe(endedBySite),
  }),
  z.strictObject({
    ok: z.literal(false),
    refusal,
    /** Named outputs that the job did not make. */
    missing: texts,
    /** Named outputs without content that could be brought home. */
    odd: maybe(z.array(oddOutput)),
    /** Files that came home in spite of that. */
    files: maybe(z.array(fetchedFile)),
  }),
]);
