import type { Duplex, Readable, Writable } from 'node:stream';

/**
 * How a machine is reached: nothing here knows jobs or batch systems. One Transport is one connection, shared by all
 * who need the site; it connects at first use and again after a loss. Every failure is a GryphusError whose `retry`
 * says whether waiting helps ('site-unreachable', 'login-refused', 'needs-login', 'host-key-changed', …).
 */
export interface Transport {
  /** `local`, or `user@host:port`, for messages. */
  readonly label: string;
  /**
   * Runs a POSIX shell command line at the far side, in the home directory, to its end. On 'timeout' and abort
   * ('interrupted') its process group is told to end. A command that was under way when the connection went may have run.
   */
  run(command: string, options?: RunOptions): Promise<RunResult>;
  /** Starts a long-lived command; the streams are bytes, and both outputs have to be read. */
  open(command: string): Promise<Channel>;
  /**
   * Sends one file; it appears under `remotePath` (absolute, or from the home directory) whole or not at all; a cut
   * transfer resumes where it stopped. 'input-missing', 'disk-full', 'site-refused'; 'protocol-error' when it changed.
   */
  put(localPath: string, remotePath: string, options?: PutOptions): Promise<void>;
  /** Brings one file in the same way. 'output-missing', 'output-unwritable', 'disk-full'. */
  get(remotePath: string, localPath: string, options?: TransferOptions): Promise<void>;
  /**
   * Listens at the far side; each connection there is a stream here. A socket file replaces what has its name; its
   * directory has to be there. It ends with the connection. 'site-refused' where the far side forwards nothing so.
   */
  listen(at: ListenAt, onStream: (stream: Duplex) => void): Promise<Listening>;
  /** Resolves once with the reason when the present connection is lost; a later use connects again. */
  onLost(listener: (reason: Error) => void): () => void;
  close(): Promise<void>;
}

export interface RunOptions {
  readonly stdin?: string | Uint8Array;
  /** Milliseconds until the command is given up with 'timeout'. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface RunResult {
  /** Exit status, or `undefined` when a signal ended it. */
  readonly code: number | undefined;
  readonly signal: string | undefined;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
}

/** A socket file, or a port of the loopback interface that is free. */
export type ListenAt = { readonly kind: 'socket'; readonly path: string } | { readonly kind: 'port' };
export type ListenPlace = Extract<ListenAt, { kind: 'socket' }> | { readonly kind: 'port'; readonly port: number };

export interface Listening {
  readonly place: ListenPlace;
  /** Resolves when nothing listens any more. */
  readonly closed: Promise<void>;
  close(): void;
}

export interface Channel {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Resolves when the command ended or the connection went; never rejects. */
  readonly closed: Promise<ChannelEnd>;
  kill(): void;
}

export type ChannelEnd =
  | { readonly kind: 'exited'; readonly code: number }
  | { readonly kind: 'signaled'; readonly signal: string }
  | { readonly kind: 'lost'; readonly reason: Error };

export interface TransferOptions {
  readonly signal?: AbortSignal;
  /** Bytes done and in all. */
  readonly onProgress?: (done: number, total: number) => void;
}

export interface PutOptions extends TransferOptions {
  /** Permission bits at the far side, default 0o600. */
  readonly mode?: number;
}
