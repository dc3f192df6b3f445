import type { AttrTexts } from '../job/attrs.ts';
import type { AttemptKey } from '../job/ids.ts';
import type { QueueMark } from '../job/mark.ts';

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
  /** What changed since `cursor`, of all our attempts; the cursor `undefined` asks for everything (recovery: one exchange for all jobs). */
  poll(request: PollRequest): Promise<PollAnswer>;
  /**
   * Resolves when none of the keys can run any more (never started, or ended, or killed). An unknown key is withdrawn. With
   * `onlyIfNotStarted`, what has started is left alone, and refused as 'already-started'.
   */
  cancel(keys: readonly AttemptKey[], options?: CancelOptions): Promise<Outcomes>;
  /**
   * Attempts that ask may start now. The leave is on the site's disk when it answers, and holds for all later submissions of
   * the attempt. A site that cannot let its jobs wait has no such method: it takes no bids.
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

export interface Capacity {
  readonly cpus?: number;
  readonly freeCpus?: number;
}

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

export type Outcome =
  | { readonly ok: true; readonly batchId?: string }
  | { readonly ok: false; readonly refusal: Refusal };
export type Outcomes = ReadonlyMap<AttemptKey, Outcome>;

/** Why a site would not do it for this one job. */
export interface Refusal {
  /**
   * `never`: will always fail, hold the job. `later`: a passing limit (queue full, site busy), the job waits here as idle.
   * `gone`: the site does not know the key (swept, or the site lost its disk): prepare again.
   */
  readonly kind: 'never' | 'later' | 'gone';
  readonly code:
    | 'site-refused'
    | 'input-missing'
    | 'disk-full'
    | 'site-busy'
    /** It takes no more jobs of ours now: a limit of jobs is reached. Always `later`. */
    | 'site-full'
    /** Its content is on its way there, and goes on. Always `later`. */
    | 'arriving'
    | 'output-missing'
    | 'unknown-key'
    | 'already-started';
  /** One sentence, with the site's own words. */
  readonly message: string;
}

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
export interface AttemptSpec {
  readonly key: AttemptKey;
  /** A short name for the site's queue display, already printable. */
  readonly title: string;
  readonly executable: SiteFile;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** The job's X509_USER_PROXY is the proxy that was delegated under this name. */
  readonly proxy?: string;
  readonly stdin: SiteFile | undefined;
  readonly inputs: readonly InputFile[];
  /** What will be fetched, for a site that gives results once; absent: all that the job made. */
  readonly outputs?: readonly string[] | 'new';
  /** Directory at the site to run in instead of the attempt's own (no file transfer). */
  readonly cwd?: string;
  /** How to run it, instead, on a machine that shares the file system of home: there, without any transfer. */
  readonly shared?: { readonly cwd: string; readonly executable: string; readonly stdin?: string };
  /** The job's ad, for a site that matches jobs with machines itself: the pool. */
  readonly ad?: AttrTexts;
  /** What it runs in. Only the pool can: `executable` that is `there` is then the image's own, '' what the image starts by itself. */
  readonly container?: ContainerSpec;
  /** stdout and stderr go into one stream, in order. */
  readonly joinStderr: boolean;
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

/** A program's container: its image, and how it is made. */
export interface ContainerSpec {
  readonly image: /** With its scheme: `docker://debian:12`. */
    | { readonly kind: 'registry'; readonly name: string }
    /** On the node: absolute, or in the sandbox. A .sif file, an archive, or a directory. */
    | { readonly kind: 'there'; readonly path: string }
    | { readonly kind: 'file'; readonly name: string; readonly file: SiteFile };
  /** Of docker itself, or of what takes its place. */
  readonly docker: boolean;
  /** The image's entry point is started, with the program as its first argument. */
  readonly keepEntrypoint: boolean;
  /** Where the sandbox is in the container; without it, where it is outside. */
  readonly targetDir?: string;
  /** As `docker_network_type` has it. */
  readonly network?: string;
  readonly alwaysPull: boolean;
  /** Paths outside of the sandbox that it sees, where they are. */
  readonly binds: readonly string[];
}

/** A file for the site: carried there by content, already there, or fetched there when the attempt starts. */
export type SiteFile =
  | { readonly kind: 'blob'; readonly blob: Blob }
  | { readonly kind: 'there'; readonly path: string }
  | { readonly kind: 'url'; readonly url: string };

/** Content that crosses once to a site, under its SHA-256. */
export interface Blob {
  readonly sha256: string;
  readonly bytes: number;
  /** Absolute path at home to read it from. */
  readonly path: string;
}

export type InputFile =
  | {
      readonly kind: 'file';
      readonly name: string;
      readonly file: SiteFile;
      readonly executable: boolean;
      /** The job made it itself, in an earlier attempt: it is one of its results. */
      readonly restored?: true;
    }
  | { readonly kind: 'directory'; readonly name: string };

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
  /** The answer speaks of every attempt that the site holds: what is not named, the site does not know. */
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

/** What a site says of one attempt. Total: a word that nobody knows is `unclear`, never an end. */
export type Report = { readonly key: AttemptKey } & (
  | { readonly is: 'prepared' }
  | { readonly is: 'queued'; readonly batchId?: string; readonly why?: string }
  | { readonly is: 'held-by-site'; readonly batchId?: string; readonly why: string }
  | { readonly is: 'running'; readonly batchId?: string; readonly host?: string; readonly since?: number }
  /** It has its place and would start, but for the leave that its record wants. */
  | { readonly is: 'asking'; readonly batchId?: string; readonly host?: string }
  | { readonly is: 'suspended'; readonly batchId?: string; readonly why?: string }
  /** The batch system does not have it and its lock was never taken: it can be prepared and committed again. */
  | { readonly is: 'lost'; readonly why: string }
  | ({ readonly is: 'ended' } & Ending)
  | { readonly is: 'unclear'; readonly batchId?: string; readonly words: string }
);

export interface Ending {
  readonly how:
    | { readonly kind: 'exited'; readonly code: number }
    | { readonly kind: 'signaled'; readonly signal: number; readonly coreDumped?: boolean }
    /** The site ended it, or cannot say how it ended: never taken for a success. */
    | { readonly kind: 'by-site'; readonly cause: SiteCause; readonly words: string };
  /** Unix seconds by our clock, where the site's is known to be off. */
  readonly startedAt?: number;
  readonly endedAt?: number;
  readonly host?: string;
  readonly usage?: Usage;
  readonly stdoutBytes?: number;
  readonly stderrBytes?: number;
  /** An exit status is known as well as the site's cause (killed at the time limit with 143, say). */
  readonly words?: string;
}

export type SiteCause =
  | 'timeout'
  | 'node-fail'
  | 'preempted'
  /** The site put it back into its queue after it had started. */
  | 'requeued'
  /** The site has it, and can never start it as it is asked for. */
  | 'unsatisfiable'
  | 'out-of-memory'
  | 'cancelled'
  | 'boot-fail'
  | 'deadline'
  | 'cannot-start'
  /** Its container's image is not there, or cannot be fetched. */
  | 'no-image'
  | 'vanished';

export interface Usage {
  readonly userCpuSeconds?: number;
  readonly systemCpuSeconds?: number;
  readonly maxRssKb?: number;
  readonly diskKb?: number;
}

export interface FetchRequest {
  readonly key: AttemptKey;
  /** Names in the attempt's directory; `new`: all files at its top that were not there at the start (HTCondor's default). */
  readonly outputs: readonly string[] | 'new';
  readonly stdout: boolean;
  readonly stderr: boolean;
  /** Absolute, at home, the attempt's own; what is there already and whole is not sent again. */
  readonly into: string;
}

export type FetchOutcome =
  | {
      readonly ok: true;
      readonly files: readonly FetchedFile[];
      /** The site lost the results after it had told of the end: that is what the end comes to. */
      readonly lost?: Extract<Ending['how'], { kind: 'by-site' }>;
    }
  | {
      readonly ok: false;
      readonly refusal: Refusal;
      /** Named outputs that the job did not make. */
      readonly missing: readonly string[];
      /** What stands among the named outputs and has no content that could be brought home. */
      readonly odd?: readonly OddOutput[];
      /** What came home all the same. */
      readonly files?: readonly FetchedFile[];
    };

/** `loop`: a link to a directory that the link itself is in. */
export interface OddOutput {
  /** In the attempt's directory. */
  readonly name: string;
  readonly is: 'pipe' | 'socket' | 'device' | 'loop';
}

export interface FetchedFile {
  /** As the job named it, relative; directories are given by their files. */
  readonly name: string;
  readonly kind: 'output' | 'stdout' | 'stderr';
  /** Absolute, at home. */
  readonly path: string;
  readonly bytes: number;
  readonly executable: boolean;
  /** Permission bits that the job chose for it; absent: those that files get by themselves. */
  readonly mode?: number;
}
