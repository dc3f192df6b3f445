import type { Duplex } from 'node:stream';
import { GryphusError } from '../../errors.ts';

/** A message of the pool's protocol; `t` is its type. */
export interface WireMessage {
  readonly t: string;
}

/** The maximum sizes of a frame's parts, in bytes; a larger one means a broken or hostile peer. */
export interface FrameLimits {
  readonly json: number;
  readonly bytes: number;
}

const LIMITS: FrameLimits = { json: 64 << 20, bytes: 16 << 20 };
const HEAD = 8;
/** How long an unhurried message may be delayed so that others are sent with it, in milliseconds. */
const MOMENT_MS = 4;

/** From this size on, bytes are sent as they stand in memory and not copied between others; bytes. */
const LARGE = 32 << 10;

/**
 * One message as it is sent: the lengths of its two parts (unsigned 32-bit, big-endian), the message as JSON, and the
 * bytes that belong to it, which must not be changed afterwards.
 */
export function encodeFrame(message: WireMessage, bytes: Uint8Array = EMPTY): Buffer[] {
  const json = Buffer.from(JSON.stringify(message), 'utf8');
  const head = Buffer.allocUnsafe(HEAD);
  head.writeUInt32BE(json.length, 0);
  head.writeUInt32BE(bytes.length, 4);
  if (bytes.length < LARGE) return [Buffer.concat([head, json, bytes])];
  return [Buffer.concat([head, json]), Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)];
}

const EMPTY = Buffer.alloc(0);

/** Splits a byte stream into frames. Throws a GryphusError 'protocol-error' for anything that is not a frame. */
export class FrameReader {
  #held: Buffer[] = [];
  #size = 0;
  /** How many bytes are needed before there is anything to do, so that a long frame is concatenated only once. */
  #wanted = HEAD;
  readonly #take: (message: WireMessage, bytes: Buffer) => void;
  readonly #limits: FrameLimits;

  constructor(take: (message: WireMessage, bytes: Buffer) => void, limits = LIMITS) {
    this.#take = take;
    this.#limits = limits;
  }

  push(data: Buffer): void {
    this.#held.push(data);
    this.#size += data.length;
    if (this.#size < this.#wanted) return;
    let all = this.#held.length === 1 ? data : Buffer.concat(this.#held);
    for (;;) {
      this.#wanted = HEAD;
      if (all.length < HEAD) break;
      const json = all.readUInt32BE(0);
      const bytes = all.readUInt32BE(4);
      if (json > this.#limits.json || bytes > this.#limits.bytes)
        throw new GryphusError('protocol-error', 'A frame is too long.');
      this.#wanted = HEAD + json + bytes;
      if (all.length < this.#wanted) break;
      this.#take(parse(all.toString('utf8', HEAD, HEAD + json)), all.subarray(HEAD + json, this.#wanted));
      all = all.subarray(this.#wanted);
    }
    this.#held = all.length > 0 ? [all] : [];
    this.#size = all.length;
  }
}

function parse(text: string): WireMessage {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new GryphusError('protocol-error', 'A frame is not JSON.');
  }
  if (typeof value === 'object' && value !== null && 't' in value && typeof value.t === 'string')
    return value as WireMessage;
  throw new GryphusError('protocol-error', 'A frame is not a message.');
}

/**
 * Messages over any duplex stream. Messages sent within one turn of the event loop go out in one write. Sending never
 * throws: a broken stream closes the channel once, and the listener is told why.
 */
export class Channel<In extends WireMessage, Out extends WireMessage> {
  readonly #stream: Duplex;
  readonly #read: (message: WireMessage) => In;
  readonly #waiting: Buffer[] = [];
  #scheduled = false;
  #moment: NodeJS.Timeout | undefined;
  #closed = false;
  #heardAt = performance.now();
  #onClose: (message: string) => void = () => undefined;

  readonly #limits: FrameLimits | undefined;

  /** `read` throws for an invalid message. */
  constructor(stream: Duplex, read: (message: WireMessage) => In, limits?: FrameLimits) {
    this.#stream = stream;
    this.#read = read;
    this.#limits = limits;
  }

  /** Starts reading. If `take` throws, the channel is closed. */
  open(take: (message: In, bytes: Buffer) => void, onClose: (message: string) => void): void {
    this.#onClose = onClose;
    const reader = new FrameReader((message, bytes) => {
      if (!this.#closed) take(this.#read(message), bytes);
    }, this.#limits);
    this.#stream.on('data', (data: Buffer) => {
      this.#heardAt = performance.now();
      if (this.#closed) return;
      try {
        reader.push(data);
      } catch (thrown) {
        this.close(thrown instanceof Error ? thrown.message : String(thrown));
      }
    });
    this.#stream.on('error', (error: Error) => this.close(error.message));
    this.#stream.on('close', () => this.close('the connection ended'));
    this.#stream.on('end', () => this.close('the other side ended the connection'));
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** When the last byte arrived, by the monotonic clock: a single message may take long to arrive. */
  get heardAt(): number {
    return this.#heardAt;
  }

  /** Bytes waiting to be sent. */
  get backlog(): number {
    return this.#stream.writableLength;
  }

  /** `unhurried`: may be delayed briefly, so that others are sent with it. `bytes` must not be changed afterwards. */
  send(message: Out, bytes?: Uint8Array, unhurried = false): void {
    if (this.#closed) return;
    this.#waiting.push(...encodeFrame(message, bytes));
    if (this.#scheduled) return;
    if (unhurried) {
      this.#moment ??= setTimeout(() => this.#flush(), MOMENT_MS);
      return;
    }
    this.#scheduled = true;
    process.nextTick(() => this.#flush());
  }

  close(message: string): void {
    if (this.#closed) return;
    this.#flush();
    this.#closed = true;
    this.#stream.end();
    setTimeout(() => this.#stream.destroy(), 1000).unref();
    this.#onClose(message);
  }

  #flush(): void {
    this.#scheduled = false;
    clearTimeout(this.#moment);
    this.#moment = undefined;
    if (this.#waiting.length === 0 || this.#stream.destroyed) return;
    if (this.#waiting.every((one) => one.length < LARGE)) this.#stream.write(Buffer.concat(this.#waiting));
    else {
      this.#stream.cork();
      for (const one of this.#waiting) this.#stream.write(one);
      this.#stream.uncork();
    }
    this.#waiting.length = 0;
  }
}
