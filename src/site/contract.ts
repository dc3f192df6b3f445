import type { AttrTexts } from '../job/attrs.ts';
import type { AttemptKey } from '../job/ids.ts';
import type { QueueMark } from '../job/mark.ts';
import type { HomeAnswer, HomeRequest } from './chirp.ts';
import type { sending } from './sending.ts';
import type * as shapes from './shapes.ts';
import type { Read } from '../util/schema.ts';

/**
 * All that the GridManager knows about a place that runs jobs. Each call takes many jobs and is idempotent by key: if
 * it is repeated, or called again after a crash of either side, it takes effect once. Our JobManager over a transport
 * is one implementation, the grid's GRAM another, another Gryphus a third.
 *
 * A call rejects only if the *site* as a whole cannot be reached (a GryphusError with `retry`); what happens to one job
 * is a value.
 */
export interface Site {
  readonly name: string;
  /** Describes the site; connects if needed. */
  describe(): Promise<SiteFacts>;
  /**
   * Sends inputs and records the attempt at the site; nothing runs yet. A prepared attempt that is not committed in
   * time is swept.
   */
  prepare(specs: readonly AttemptSpec[]): Promise<Outcomes>;
  /** The site promises to start each attempt once. Resolves when the promise is on the site's disk. */
  commit(keys: readonly AttemptKey[]): Promise<Outcomes>;
  /**
   * Both in one exchange, for a site where nothing in between can fail: the pool, whose journal is on this disk. Other
   * sites lack this method and get PREPARE, then COMMIT.
   */
  submit?(specs: readonly AttemptSpec[]): Promise<Outcomes>;
  /**
   * What changed since `cursor` in all our attempts; without a cursor, everything (recovery: one exchange for all
   * jobs).
   */
  poll(request: PollRequest): Promise<PollAnswer>;
  /**
   * Resolves when none of the keys can run any more (never started, ended, or killed). An unknown key is withdrawn.
   * With `onlyIfNotStarted`, what has started is left alone and refused as 'already-started'.
   */
  cancel(keys: readonly AttemptKey[], options?: CancelOptions): Promise<Outcomes>;
  /**
   * Lets attempts that ask start now. The leave is on the site's disk when this resolves, and applies to all later
   * submissions of the attempt. A site whose jobs cannot wait lacks this method and takes no candidates.
   */
  leave?(keys: readonly AttemptKey[]): Promise<Outcomes>;
  /** Brings results home: complete, verified files in each request's directory. */
  fetch(requests: readonly FetchRequest[]): Promise<ReadonlyMap<AttemptKey, FetchOutcome>>;
  /**
   * Uploads results of an ended attempt to URLs from the site itself. Returns those that arrived complete; reasons for
   * the others do not matter, since they can be fetched. Only sites that can upload have this method.
   */
  upload?(key: AttemptKey, files: readonly Upload[]): Promise<readonly string[]>;
  /**
   * Installs or renews the site's X.509 proxy for all attempts whose `proxy` is `name` (letters, digits, dots, dashes).
   * The key is made there and stays there; `sign` answers its request (both PEM). Only sites that take proxies have
   * this method.
   */
  delegate?(name: string, sign: (requestPem: string) => Promise<string>): Promise<void>;
  /** COMMIT_END: the site deletes everything about these attempts. Only after the results are home and recorded. */
  forget(keys: readonly AttemptKey[]): Promise<Outcomes>;
  /** The site's cores as its batch system reports them now. A site that cannot tell lacks this method or omits them. */
  capacity?(): Promise<Capacity>;
  /** The latest queue position that the site knows. A site that keeps no such mark lacks this method and the next. */
  lastMark?(): Promise<QueueMark | undefined>;
  /** Makes the site keep this mark, and the marks sent with every later PREPARE and COMMIT_END. */
  keepMark?(mark: QueueMark): Promise<void>;
  /** Has requests of running jobs (`want_io_proxy`) answered. Only sites that carry such requests have this method. */
  answerJobs?(answer: (key: AttemptKey, request: HomeRequest, bytes: Uint8Array) => Promise<HomeAnswer>): void;
  close(): Promise<void>;
}

export interface Upload {
  /** Relative to the attempt's directory. */
  readonly name: string;
  readonly url: string;
  readonly login?: { readonly user: string; readonly password: string };
}

export type Capacity = Read<typeof shapes.capacity>;

export interface SiteFacts {
  /** The machine that the transport reached, by its own host name. */
  readonly host: string;
  readonly os: string;
  readonly arch: string;
  readonly user: string;
  /** Our directory at the site, absolute. */
  readonly home: string;
  readonly freeDiskKb: number | undefined;
  readonly batch: string;
  readonly batchVersion: string | undefined;
}

export type Outcome = Read<typeof shapes.outcome>;
export type Outcomes = ReadonlyMap<AttemptKey, Outcome>;

export type Refusal = Read<typeof shapes.refusal>;

export type Sending = Read<typeof sending>;

/** One attempt: as much of a job as a site needs to know. */
export interface AttemptSpec extends Read<typeof shapes.program> {
  readonly key: AttemptKey;
  /** A short name to show in the site's queue, already printable. */
  readonly title: string;
  /** What will be fetched, for a site that gives out results only once; absent: everything that the job makes. */
  readonly outputs?: readonly string[] | 'new';
  /** The job's ad, for a site that itself matches jobs with machines: the pool. */
  readonly ad?: AttrTexts;
  readonly resources: Resources;
  readonly batch: BatchOptions;
  /**
   * The program starts only with `leave`: when the site would start it, it reports 'asking' and waits this many
   * seconds. After that it gives up and is 'lost'.
   */
  readonly leaveWithin?: number;
  /**
   * The contents of the files `_CONDOR_JOB_AD` and `_CONDOR_MACHINE_AD` for the program, as lines `Name = expression`.
   * The site adds its own name to the second.
   */
  readonly ads?: { readonly job: readonly string[]; readonly machine: readonly string[] };
  /** It may ask its home while it runs (`want_io_proxy`). The pool has a proxy of its own. */
  readonly ioProxy?: IoProxyPrograms;
}

/** What answers a job's requests at a site, `program` run by `node`; the JobManager carries them home. */
export interface IoProxyPrograms {
  readonly node: SiteFile;
  readonly program: SiteFile;
}

export type ContainerSpec = Read<typeof shapes.containerSpec>;
export type SiteFile = Read<typeof shapes.siteFile>;
export type Blob = Read<typeof shapes.blob>;
export type InputFile = Read<typeof shapes.inputFile>;

/** For each node, if the job has several. */
export interface Resources {
  readonly cpus: number;
  readonly memoryMb: number | undefined;
  readonly diskKb: number | undefined;
  readonly gpus: number | undefined;
  readonly walltimeSeconds: number | undefined;
  /** No other job may run on its host. */
  readonly wholeHost?: boolean;
  /**
   * A parallel job: the program starts on the first of so many nodes, where the site's launcher can start `ranks`
   * processes on each of them. `cpus` is a multiple of `ranks`.
   */
  readonly nodes?: { readonly count: number; readonly ranks: number };
}

export interface BatchOptions {
  readonly queue?: string;
  readonly project?: string;
  /** Grid Engine's parallel environment for several nodes; default: one that fits is searched for. */
  readonly parallelEnvironment?: string;
  /** More options for the batch system's submit command, as the user wrote them. */
  readonly extraArgs: readonly string[];
}

export interface CancelOptions {
  readonly onlyIfNotStarted?: boolean;
  /**
   * Unix milliseconds since when each has been told to end: a site may be tougher on those that do not end for long.
   */
  readonly since?: ReadonlyMap<AttemptKey, number>;
}

export interface PollRequest {
  readonly cursor: string | undefined;
  /** Running attempts whose streams are wanted, from these byte offsets. */
  readonly follow: readonly Follow[];
  /** How many milliseconds to wait for news before answering that there is none; default 0. */
  readonly waitMs?: number;
  /**
   * Without a cursor: the attempts that the site should have, with their ids in its queue. What is in the queue is
   * reported as unclear, never as missing, even if the site has lost its own record of it.
   */
  readonly promised?: ReadonlyMap<AttemptKey, string | undefined>;
  /** While nothing happens there, nothing need be asked more often than this, whatever is usual; milliseconds, default 0. */
  readonly restMs?: number;
}

export interface Follow {
  readonly key: AttemptKey;
  readonly stdout: number;
  readonly stderr: number;
  /** Files in its directory that are wanted while they grow (`stream_results`). */
  readonly files?: FollowFiles;
}

export interface FollowFiles {
  /** Of names in the job's directory (src/util/name-patterns.ts). Links are not followed. */
  readonly patterns: readonly string[];
  /** Nothing is known of them here: their sizes are wanted, now or soon. Otherwise only sizes that have changed. */
  readonly afresh: boolean;
  /** What is wanted of their content; each is answered by one piece, in this answer or a later one. */
  readonly wanted: readonly WantedPiece[];
}

export interface WantedPiece {
  readonly name: string;
  readonly offset: number;
}

export interface PollAnswer {
  readonly cursor: string;
  /**
   * The answer covers every attempt that the site holds, so the site does not know an attempt that is not named. True
   * without a cursor, and if the site lost attempts.
   */
  readonly complete: boolean;
  readonly reports: readonly Report[];
  readonly chunks: readonly Chunk[];
  /** Of followed files; the names are not trusted. A site that cannot follow files lacks them. */
  readonly sizes?: readonly FileSize[];
  readonly pieces?: readonly Piece[];
  /** Attempts whose wanted pieces, if they have not come, will not come. */
  readonly unanswered?: readonly AttemptKey[];
}

export interface FileSize extends Read<typeof shapes.fileSize> {
  readonly key: AttemptKey;
}

/** As much as the site sends at once of a file from `offset` on; nothing if it is shorter, or no file any more. */
export interface Piece extends WantedPiece {
  readonly key: AttemptKey;
  readonly data: Uint8Array;
}

export interface Chunk {
  readonly key: AttemptKey;
  readonly stream: 'stdout' | 'stderr';
  readonly offset: number;
  readonly data: Uint8Array;
}

export type Report = Read<typeof shapes.report>;
export type NodeReport = Read<typeof shapes.nodeReport>;
export type Ending = Read<typeof shapes.ending>;
export type SiteCause = Read<typeof shapes.siteCause>;
export type PreemptedBy = Read<typeof shapes.preemptedBy>;
export type Usage = Read<typeof shapes.usage>;

export type FetchRequest = Read<typeof shapes.fetchRequest>;
export type FetchOutcome = Read<typeof shapes.fetchOutcome>;
export type FetchedFile = Read<typeof shapes.fetchedFile>;
export type OddOutput = Read<typeof shapes.oddOutput>;
