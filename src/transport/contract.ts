import type { Duplex, Readable, Writable } from 'node:stream';

/**
 * How a machine is reached; nothing here knows about jobs or batch systems. One Transport is one connection, shared by
 * all users of the site; it connects at first use and reconnects after a loss. Every failure is a GryphusError whose
 * `retry` tells whether waiting helps ('site-unreachable', 'login-refused', 'needs-login', 'host-key-changed', …).
 */
export interface Transport {
  /** `local`, or `user@host:port`, for messages. */
  readonly label: string;
  /**
   * Runs a POSIX shell command line at the far side, in the home directory, until it ends. On 'timeout' and abort
   * ('interrupted') its process group is told to end. If the connection is lost meanwhile, the command may have run.
   */
  run(command: string, options?: RunOptions): Promise<RunResult>;
  /** Starts a long-running command. The streams carry bytes, and both outputs must be read. */
  open(command: string): Promise<Channel>;
  /**
   * Sends one file, which appears under `remotePath` (absolute, or relative to the home directory) whole or not at all;
   * an interrupted transfer resumes where it stopped. 'input-missing', 'disk-full', 'site-refused'; 'protocol-error' if
   * the file changed meanwhile.
   */
  put(localPath: string, remotePath: string, options?: PutOptions): Promise<void>;
  /** Fetches one file in the same way. 'output-missing', 'output-unwritable', 'disk-full'. */
  get(remotePath: string, localPath: string, options?: TransferOptions): Promise<void>;
  /**
   * Listens at the far side; each connection there becomes a stream here. A socket file replaces one of the same name,
   * and its directory must exist. Listening ends with the connection. 'site-refused' if the far side does not allow
   * this kind of forwarding.
   */
  listen(at: ListenAt, onStream: (stream: Duplex) => void): Promise<Listening>;
  /** Calls `listener` once, with the reason, when the current connection is lost; the next use reconnects. */
  onLost(listener: (reason: Error) => void): () => void;
  close(): Promise<void>;
}

export interface RunOptions {
  readonly stdin?: string | Uint8Array;
  /** After this many milliseconds, the command fails with 'timeout'. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface RunResult {
  /** The exit status, or `undefined` if a signal ended the command. */
  readonly code: number | undefined;
  readonly signal: string | undefined;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
}

/** A socket file, or a free port of the loopback interface. */
export type ListenAt = { readonly kind: 'socket'; readonly path: string } | { readonly kind: 'port' };
export type ListenPlace = Extract<ListenAt, { kind: 'socket' }> | { readonly kind: 'port'; readonly port: number };

export interface Listening {
  readonly place: ListenPlace;
  /** Resolves when listening has ended. */
  readonly closed: Promise<void>;
  close(): void;
}

export interface Channel {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Resolves when the command has ended or the connection is lost; never rejects. */
  readonly closed: Promise<ChannelEnd>;
  kill(): void;
}

export type ChannelEnd =
  | { readonly kind: 'exited'; readonly code: number }
  | { readonly kind: 'signaled'; readonly signal: string }
  | { readonly kind: 'lost'; readonly reason: Error };

export interface TransferOptions {
  readonly signal?: AbortSignal;
  /** Reports the bytes transferred so far and in total. */
  readonly onProgress?: (done: number, total: number) => void;
  /** Called at the end with the SHA-256 (hex) of what came, unless an interrupted transfer was resumed. */
  readonly onDigest?: (sha256: string) => void;
}

export interface PutOptions extends TransferOptions {
  /** Permission bits at the far side; 0o600 by default. */
  readonly mode?: number;
}
