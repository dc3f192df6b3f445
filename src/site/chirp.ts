import * as z from 'zod';
import { attemptKey } from '../job/schema.ts';
import { count, flag, type Read, text, texts } from '../util/schema.ts';

/** Where a job finds its proxy (`want_io_proxy`), in its directory, under HTCondor's file name. */
export const CHIRP_CONFIG = '.chirp.config';

/** The longest line of Chirp, in bytes, without its end. */
export const CHIRP_LINE = 1023;

/** Names that an attribute of a job can have, and those of set_job_attr_delayed (HTCondor's CHIRP_DELAYED_UPDATE_PREFIX). */
export const ATTRIBUTE_NAME = /^[A-Za-z_]\w*$/;
export const DELAYED_NAME = /^chirp\w*$/i;

/** The results of Chirp that are not successes (the protocol of HTCondor's condor_starter). */
export const CHIRP_ERROR = {
  notAuthenticated: -1,
  notAuthorized: -2,
  doesNotExist: -3,
  alreadyExists: -4,
  tooBig: -5,
  noSpace: -6,
  noMemory: -7,
  invalidRequest: -8,
  tooManyOpen: -9,
  busy: -10,
  tryAgain: -11,
  badFd: -12,
  isDirectory: -13,
  notDirectory: -14,
  notEmpty: -15,
  crossDevice: -16,
  offline: -17,
  unknown: -127,
} as const;

/** Chirp's own requests that a job's home answers as they are. */
export const AS_THEY_ARE = [
  'stat',
  'lstat',
  'statfs',
  'access',
  'unlink',
  'rename',
  'mkdir',
  'rmdir',
  'rmall',
  'getdir',
  'getlongdir',
  'link',
  'symlink',
  'readlink',
  'chmod',
  'chown',
  'lchown',
  'truncate',
  'utime',
  'constrain',
  'get_job_attr',
  'set_job_attr',
  'ulog',
] as const;

/**
 * What a running job asks its home to do. Paths are relative to the submit directory; open files are known to the
 * worker only, so each request names its path. `words` and `numbers` as Chirp has them, unless said otherwise.
 */
export const HOME_OPS = [
  /** PATH FLAGS, MODE: the file's state (`stat`). Creates and empties it as the flags of Chirp say. */
  'open',
  /** PATH, LENGTH OFFSET STRIDE SKIP: bytes, fewer at the end of the file. */
  'read',
  /** PATH, OFFSET STRIDE SKIP and the bytes. */
  'write',
  /** PATH and the bytes, which are written behind its end. */
  'append',
  'fsync',
  ...AS_THEY_ARE,
  /** NAME TEXT NAME TEXT …: values of set_job_attr_delayed. */
  'set_job_attrs_delayed',
  /** Of a job with `want_remote_io`: a call of `REMOTE_CALLS` and its words and numbers. Errors are errnos below 0. */
  'remote_io',
  /** From the worker, not the job, of one with `want_remote_io`. Bytes: `directReads` as JSON. */
  'remote_direct',
  /** From the worker, not the job. USER SYSTEM: milliseconds of processor time. Its image was written, and it goes on. */
  'checkpointed',
  /** From the worker, not the job. WHY: its user asked for an image, and there is none. */
  'not_checkpointed',
  /**
   * From the worker of a partner's job, for the gateway. TRIES MILLISECONDS: how often it was told where to pull the job's late inputs, and
   * how long the latest try was in vain. Bytes: `inputsAt` (src/pool/wire/) as JSON.
   */
  'partner_inputs',
] as const;
export type HomeOp = (typeof HOME_OPS)[number];

/** What a worker tells of a job that it runs, whether or not the job has a proxy. */
export const WORKERS_OWN: ReadonlySet<HomeOp> = new Set<HomeOp>(['checkpointed', 'not_checkpointed', 'partner_inputs']);

/** A request of a job: sent again (`again`) when the connection was cut, it is done once. */
export const homeRequest = z.strictObject({
  op: z.enum(HOME_OPS),
  words: texts,
  numbers: z.array(z.int()),
  /** The job's connection, whose requests follow each other, and the request's number in it. */
  session: text,
  n: count,
  again: flag,
});
export type HomeRequest = Read<typeof homeRequest>;

/** A number as Chirp means it, below 0 an error of `CHIRP_ERROR`, and the bytes that follow it. */
export interface HomeAnswer {
  readonly result: number;
  readonly bytes?: Uint8Array;
}

/** The most bytes of a file in one request or answer. */
export const CHIRP_PIECE = 1 << 20;

/**
 * A request as a record at a site, whose connection to home is the JobManager's: one line of JSON with this, and the bytes.
 * It is the file `asking/NAME` of the agent's directory there, the answer (`homeReply` and the bytes) the file
 * `jobs/KEY/answers/NAME`. NAME is KEY.SESSION.N, with two words in SESSION.
 */
export const askedRecord = z.strictObject({ key: attemptKey, request: homeRequest });
export type AskedRecord = Read<typeof askedRecord>;
export const homeReply = z.strictObject({ result: z.int() });

/** The most bytes of such a record: a piece of a file, and two names that are as long as a line of Chirp can be. */
export const LONGEST_RECORD = CHIRP_PIECE + (1 << 16);

/** A record of two parts, and back: `undefined` if it is not whole. */
export function writeRecord(head: AskedRecord | Read<typeof homeReply>, bytes?: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), bytes ?? EMPTY]);
}

export function readRecord<T>(record: Buffer, head: z.ZodType<T>): { head: T; bytes: Buffer } | undefined {
  const end = record.indexOf(0x0a);
  if (end < 0) return undefined;
  try {
    const read = head.safeParse(JSON.parse(record.toString('utf8', 0, end)));
    return read.success ? { head: read.data, bytes: record.subarray(end + 1) } : undefined;
  } catch {
    return undefined;
  }
}

const EMPTY = Buffer.alloc(0);
