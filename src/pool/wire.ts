/*
 * What a worker and the desk say to each other. The worker dials; whoever has its connection (a unix socket, a TLS
 * port, an ssh forward, files in a mailbox) hands both sides a duplex stream, and knows nothing of what is said on it.
 *
 *   worker                             desk
 *   hello(token, instance, nonce)  →
 *                                  ←   challenge(nonce, the desk's proof)
 *   proof(ad, what it holds)       →
 *                                  ←   welcome(leases) | denied(words)
 *   ad, started, ended, gone, …    ↔   start, cancel, forget, follow, …
 *
 * Every message is safe to repeat: attempts are named by their keys, and after each new connection the worker says all
 * that it holds and the desk sends again what it does not find there.
 */
import type { AttrTexts } from '../job/attrs.ts';
import type { AttemptKey } from '../job/ids.ts';
import type { AttemptSpec, Ending, OddOutput } from '../site/contract.ts';
import type { Terminal } from './shell-text.ts';
import type { RunUsage } from './usage.ts';

export const WIRE_VERSION = 1;

/** Cores, MB of memory, KB of disk and GPUs: what a slot is made of and a job asks for. */
export interface Size {
  readonly cpus: number;
  readonly memoryMb: number;
  readonly diskKb: number;
  readonly gpus: number;
}

/** One attempt, as much as a worker needs to run it. */
export type RunSpec = Pick<
  AttemptSpec,
  'executable' | 'args' | 'env' | 'stdin' | 'inputs' | 'joinStderr' | 'container'
> & {
  /** The job's X509_USER_PROXY is the proxy that was delegated to the pool under this name. */
  readonly proxy?: string;
  /** Run there instead of in a sandbox of its own. */
  readonly cwd?: string;
  /** How to run it where the worker shares the file system of home: there, without any transfer. */
  readonly shared?: { readonly cwd: string; readonly executable: string; readonly stdin?: string };
  /** Seconds that it may run; the worker ends it after. */
  readonly walltimeSeconds?: number;
  /** Self-checkpointing: ended with `code`, its checkpoint goes home and it is started again at once. */
  readonly checkpoint?: { readonly code: number; readonly files: readonly string[] };
  /** The signal that asks it to end; default SIGTERM. */
  readonly killSignal?: string;
  /** Seconds from that signal until SIGKILL. */
  readonly vacateSeconds?: number;
};

/** A run that differs from another in its arguments alone. */
export interface DerivedSpec {
  readonly base: string;
  readonly args: readonly string[];
}

/** What a worker says of an attempt that it holds. */
export interface HeldAttempt {
  readonly key: AttemptKey;
  readonly is: 'staging' | 'running' | 'suspended' | 'ended';
  /** Unix seconds. */
  readonly startedAt?: number;
  readonly ending?: Ending;
}

/** A file in an ended attempt's directory. */
export interface OutputFile {
  readonly name: string;
  readonly bytes: number;
  readonly executable: boolean;
  /** Permission bits that the job chose for it. */
  readonly mode?: number;
  /** Given when asked for. */
  readonly sha256?: string;
}

export type FromWorker =
  | {
      readonly t: 'hello';
      readonly version: number;
      readonly token: string;
      /** Made once for each directory that a worker works in: two workers with one token are told apart. */
      readonly instance: string;
      readonly nonce: string;
    }
  | {
      readonly t: 'proof';
      readonly proof: string;
      readonly ad: AttrTexts;
      readonly size: Size;
      /** The machine's boot: what it had on disk before another boot may be gone. */
      readonly boot: string;
      readonly attempts: readonly HeldAttempt[];
    }
  /** What changed in its ad: load, time to live. */
  | { readonly t: 'ad'; readonly ad: AttrTexts }
  | { readonly t: 'started'; readonly key: AttemptKey; readonly at: number }
  | { readonly t: 'suspended' | 'resumed'; readonly key: AttemptKey }
  /**
   * It ended; it stays at the worker until `forget`. Small streams come along: the bytes are stdout's, then stderr's.
   * `files` is there when all results are known already.
   */
  | {
      readonly t: 'ended';
      readonly key: AttemptKey;
      readonly ending: Ending;
      readonly inline?: { readonly stdout: number; readonly stderr: number };
      readonly files?: readonly OutputFile[];
    }
  /**
   * It never started here and never will. `claim`: the match itself was refused; `input`: what it needs is not there;
   * `behind`: what was to end before it takes long.
   */
  | {
      readonly t: 'gone';
      readonly key: AttemptKey;
      readonly why: 'claim' | 'input' | 'cancelled' | 'never-started' | 'behind';
      readonly words: string;
    }
  /** Bytes of a stream from `offset` on. */
  | { readonly t: 'chunk'; readonly key: AttemptKey; readonly stream: 'stdout' | 'stderr'; readonly offset: number }
  /** What a shell beside a job writes, and how it ended (ssh's words: 255 where it never was). */
  | { readonly t: 'shell-out'; readonly shell: string; readonly stream: 'stdout' | 'stderr' }
  | { readonly t: 'shell-over'; readonly shell: string; readonly status: number; readonly words?: string }
  | Ask
  | Answer
  /** Answered by `pong` with the same number: only then the worker knows that the desk heard it. */
  | { readonly t: 'ping'; readonly n: number }
  /** It ends now: nothing runs here any more, nothing is to be sent. */
  | { readonly t: 'bye'; readonly words: string };

export type FromDesk =
  | { readonly t: 'challenge'; readonly nonce: string; readonly proof: string }
  | { readonly t: 'denied'; readonly words: string }
  | {
      readonly t: 'welcome';
      readonly agent: string;
      readonly site: string;
      /** Seconds without the desk after which the worker ends what it runs. */
      readonly lease: number;
      /** Seconds between pings. */
      readonly ping: number;
    }
  /** A kind of jobs: the ad that stands for all of them in the worker's own check of a match. */
  | { readonly t: 'kind'; readonly id: string; readonly ad: AttrTexts }
  /** A run that others are derived from. */
  | { readonly t: 'base'; readonly id: string; readonly spec: RunSpec }
  | {
      readonly t: 'start';
      readonly key: AttemptKey;
      /**
       * The claim that it runs under. The first start of a claim makes it: the worker checks the match again. One that
       * comes while another runs under it waits for that one's end.
       */
      readonly claim: string;
      readonly kind: string;
      readonly size: Size;
      readonly spec: RunSpec | DerivedSpec;
      /** Seconds that this job may be without the desk. */
      readonly lease: number;
      /** Of a job: its own ad, and the slot's name. */
      readonly ad?: AttrTexts;
      readonly slot?: string;
    }
  /** The claim is given back; what runs under it runs on. */
  | { readonly t: 'release'; readonly claim: string }
  /** Ends it: as if it had never been (`remove`), or so that it can go on elsewhere (`vacate`). */
  | {
      readonly t: 'cancel';
      readonly key: AttemptKey;
      readonly how: 'remove' | 'vacate' | 'if-not-started';
      readonly words: string;
    }
  | { readonly t: 'suspend' | 'resume'; readonly key: AttemptKey }
  /** The results are home: nothing is kept. What is still there under the key is ended first. */
  | { readonly t: 'forget'; readonly keys: readonly AttemptKey[] }
  /** From now on, send what is written to its streams, from these bytes on. */
  | { readonly t: 'follow'; readonly key: AttemptKey; readonly stdout: number; readonly stderr: number }
  /** A shell beside a running job, with a command or to be typed into, until one of the two ends. */
  | {
      readonly t: 'shell';
      readonly shell: string;
      readonly key: AttemptKey;
      readonly command?: string;
      readonly tty?: Terminal;
    }
  /** Bytes for it; `end`: no more will come. */
  | { readonly t: 'shell-in'; readonly shell: string; readonly end: boolean }
  /** Its terminal's window has another size now. */
  | { readonly t: 'shell-size'; readonly shell: string; readonly rows: number; readonly cols: number }
  | { readonly t: 'shell-close'; readonly shell: string }
  | Ask
  | Answer
  | { readonly t: 'pong'; readonly n: number }
  /** Takes no more jobs; `now`: those that run are vacated. It ends when none is left. */
  | { readonly t: 'drain'; readonly now: boolean; readonly words: string };

/** What of it is for the connection itself, for shells beside jobs, and for what runs. */
export type ForLink = Extract<FromDesk, { readonly t: 'challenge' | 'denied' | 'welcome' | 'pong' | 'answer' }>;
export type ForShells = Extract<FromDesk, { readonly shell: string }>;
export type Order = Exclude<FromDesk, ForLink | ForShells | { readonly t: 'ask' }>;

/**
 * A question with one answer. `blob`: bytes of an input, worker to desk, only of what was granted to it. `files`: an ended
 * attempt's results (`new`: what was not there at the start). `read`: bytes of one of them, `stdout`, `stderr` or a name
 * under `work/`. `usage`: what running attempts take. `proxy`: the answer (PEM) to a request for a proxy, worker to desk.
 */
export type Ask =
  | {
      readonly t: 'ask';
      readonly id: number;
      readonly what: 'blob';
      readonly key: AttemptKey;
      readonly sha256: string;
      readonly offset: number;
      readonly bytes: number;
    }
  | {
      readonly t: 'ask';
      readonly id: number;
      readonly what: 'files';
      readonly key: AttemptKey;
      readonly outputs: readonly string[] | 'new';
      readonly digests: boolean;
    }
  | {
      readonly t: 'ask';
      readonly id: number;
      readonly what: 'read';
      readonly key: AttemptKey;
      /** `stdout`, `stderr` or `work/NAME`. */
      readonly path: string;
      readonly offset: number;
      readonly bytes: number;
    }
  | { readonly t: 'ask'; readonly id: number; readonly what: 'usage'; readonly keys: readonly AttemptKey[] }
  | {
      readonly t: 'ask';
      readonly id: number;
      readonly what: 'proxy';
      readonly key: AttemptKey;
      readonly name: string;
      readonly request: string;
    };

/** The answer's bytes are the content that was asked for; fewer than asked: it ends there. */
export type Answer =
  | {
      readonly t: 'answer';
      readonly id: number;
      readonly ok: true;
      readonly files?: readonly OutputFile[];
      readonly missing?: readonly string[];
      readonly odd?: readonly OddOutput[];
      readonly usage?: readonly RunUsage[];
    }
  | { readonly t: 'answer'; readonly id: number; readonly ok: false; readonly words: string };
