import type { AttrTexts } from '../job/attrs.ts';
import type { AttemptKey } from '../job/ids.ts';
import type { QueueMark } from '../job/mark.ts';
import type * as shapes from './shapes.ts';
import type { Read } from './shapes.ts';

/**
 * The one thing that the GridManager knows of a place that runs jobs. Each call carries many jobs and is idempotent by
 * key: called twice, or called again after a crash of either side, it has the effect of once. Our JobManager over a
 * transport is one implementation, the grid's GRAM another, another Gryphus a third.
 *
 * A call rejects only when the *site* as a whole cannot be talked to (a GryphusError with `retry`); what happens to one
 * job is a value.
 */
export interface Site {
  readonly name: string;
  /** Connects if need be; what the site is. */
  describe(): Promise<SiteFacts>;
  /** Sends inputs and records the attempt at the site; nothing runs yet. A prepared attempt that is not committed in time is swept. */
  prepare(specs: readonly AttemptSpec[]): Promise<Outcomes>;
  /** The site promises to start each once. Answers when the promise is on the site's disk. */
  commit(keys: readonly AttemptKey[]): Promise<Outcomes>;
  /**
   * Both in one exchange, where there is nothing between them that could fail: the pool, whose journal is on this disk. A site
   * that has no such method is sent PREPARE, then COMMIT.
   */
  submit?(specs: readonly AttemptSpec[]): Promise<Outcomes>;
  /** What changed since `cursor`, of all our attempts; the cursor `undefined` asks for everything (recovery: one exchange for all jobs). */
  poll(request: PollRequest): Promise<PollAnswer>;
  /**
   * Resolves when none of the keys can run any more (never started, or ended, or killed). An unknown key is withdrawn. With
   * `onlyIfNotStarted`, what has started is left alone, and refused as 'already-started'.
   */
  cancel(keys: readonly AttemptKey[], options?: CancelOptions): Promise<Outcomes>;
  /**
   * Attempts that ask may start now. The leave is on the site's disk when it answers, and holds for all later submissions of
   * the attempt. A site that cannot let its jobs wait has no such method: it takes no candidates.
   */
  leave?(keys: readonly AttemptKey[]): Promise<Outcomes>;
  /** Brings results home: whole, verified files into each request's directory. */
  fetch(requests: readonly FetchRequest[]): Promise<ReadonlyMap<AttemptKey, FetchOutcome>>;
  /**
   * Puts results of an ended attempt at URLs, from the site itself. Names those that are whole there; why others are not is
   * not said, for they can be fetched. A site that has no such way has no such method.
   */
  upload?(key: AttemptKey, files: readonly Upload[]): Promise<readonly string[]>;
  /**
   * Puts an X.509 proxy at the site, or a fresh one over the old, for all attempts whose `proxy` is `name` (letters,
   * digits, dots, dashes). The key is made there and stays there; `sign` answers its request (both PEM). A site that
   * takes no proxies has no such method.
   */
  delegate?(name: string, sign: (requestPem: string) => Promise<string>): Promise<void>;
  /** COMMIT_END: the site deletes all it has of these attempts. Only after the result is home and recorded. */
  forget(keys: readonly AttemptKey[]): Promise<Outcomes>;
  /** The site's cores, as its batch system says it now; a site that cannot tell has no such method or answers without them. */
  capacity?(): Promise<Capacity>;
  /** How far the queue was that the site heard of last. A site that keeps no such mark has no such method, nor the next. */
  lastMark?(): Promise<QueueMark | undefined>;
  /** The site keeps this mark, and whatever it is told with each PREPARE and COMMIT_END from now on. */
  keepMark?(mark: QueueMark): Promise<void>;
  close(): Promise<void>;
}

export interface Upload {
  /** In the attempt's own directory. */
  readonly name: string;
  readonly url: string;
  readonly login?: { readonly user: string; readonly password: string };
}

export type Capacity = Read<typeof shapes.capacity>;

export interface SiteFacts {
  /** What the transport reached: host name as the site says it. */
  readonly host: string;
  readonly os: string;
  readonly arch: string;
  readonly user: string;
  /** Where our directory is at the site, absolute. */
  readonly home: string;
  readonly freeDiskKb: number | undefined;
  readonly batch: string;
  readonly batchVersion: string | undefined;
}

export type Outcome = Read<typeof shapes.outcome>;
export type Outcomes = ReadonlyMap<AttemptKey, Outcome>;

export type Refusal = Read<typeof shapes.refusal>;

/** Content on its way to a site, or a result on its way home. */
export interface Sending {
  /** At home; of a result its name and its job. */
  readonly path: string;
  readonly bytes: number;
  readonly done: number;
  /** What was there already when it began. */
  readonly resumed: number;
  /** Unix milliseconds of its beginning. */
  readonly since: number;
}

/** One attempt, as much of a job as a site needs to know. */
export interface AttemptSpec extends Read<typeof shapes.program> {
  readonly key: AttemptKey;
  /** A short name for the site's queue display, already printable. */
  readonly title: string;
  /** What will be fetched, for a site that gives results once; absent: all that the job made. */
  readonly outputs?: readonly string[] | 'new';
  /** The job's ad, for a site that matches jobs with machines itself: the pool. */
  readonly ad?: AttrTexts;
  readonly resources: Resources;
  readonly batch: BatchOptions;
  /**
   * The program starts only with `leave`: where the site would start it, it reports 'asking' and waits so long, in seconds.
   * Then it gives up, and is 'lost'.
   */
  readonly leaveWithin?: number;
  /**
   * What the program finds in the files `_CONDOR_JOB_AD` and `_CONDOR_MACHINE_AD`: lines `Name = expression`. The site
   * adds its own name to the second.
   */
  readonly ads?: { readonly job: readonly string[]; readonly machine: readonly string[] };
}

export type ContainerSpec = Read<typeof shapes.containerSpec>;
export type SiteFile = Read<typeof shapes.siteFile>;
export type Blob = Read<typeof shapes.blob>;
export type InputFile = Read<typeof shapes.inputFile>;

export interface Resources {
  readonly cpus: number;
  readonly memoryMb: number | undefined;
  readonly diskKb: number | undefined;
  readonly gpus: number | undefined;
  readonly walltimeSeconds: number | undefined;
  /** No other job on its host. */
  readonly wholeHost?: boolean;
}

export interface BatchOptions {
  readonly queue?: string;
  readonly project?: string;
  /** More words for the batch system's submit command, as the user wrote them. */
  readonly extraArgs: readonly string[];
}

export interface CancelOptions {
  readonly onlyIfNotStarted?: boolean;
  /** Unix milliseconds since when each is to end: a site may be harder on what has not ended for long. */
  readonly since?: ReadonlyMap<AttemptKey, number>;
}

export interface PollRequest {
  readonly cursor: string | undefined;
  /** Running attempts whose streams should come home, from these byte offsets. */
  readonly follow: readonly Follow[];
  /** Milliseconds to wait for something new before an answer that says that there is nothing; default 0. */
  readonly waitMs?: number;
}

export interface Follow {
  readonly key: AttemptKey;
  readonly stdout: number;
  readonly stderr: number;
}

export interface PollAnswer {
  readonly cursor: string;
  /**
   * The answer speaks of every attempt that the site holds: what is not named, the site does not know. So it does without a
   * cursor, and where the site lost some.
   */
  readonly complete: boolean;
  readonly reports: readonly Report[];
  readonly chunks: readonly Chunk[];
}

export interface Chunk {
  readonly key: AttemptKey;
  readonly stream: 'stdout' | 'stderr';
  readonly offset: number;
  readonly data: Uint8Array;
}

export type Report = Read<typeof shapes.report>;
export type Ending = Read<typeof shapes.ending>;
export type SiteCause = Read<typeof shapes.siteCause>;
export type Usage = Read<typeof shapes.usage>;

export type FetchRequest = Read<typeof shapes.fetchRequest>;
export type FetchOutcome = Read<typeof shapes.fetchOutcome>;
export type FetchedFile = Read<typeof shapes.fetchedFile>;
export type OddOutput = Read<typeof shapes.oddOutput>;
