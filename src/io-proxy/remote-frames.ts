import { REMOTE_CALLS, type RemoteCall } from '../site/remote-io.ts';

/** One request as gryphus-remote-io sends it (native/remote-io/src/wire.c). */
export interface RemoteRequest {
  readonly call: RemoteCall;
  /** Its number among the requests of its connection. */
  readonly n: number;
  /** It was sent before. */
  readonly again: boolean;
  readonly words: readonly string[];
  readonly numbers: readonly number[];
  readonly bytes: Buffer;
}

/** The length of a request, in front of it; bytes. */
export const REMOTE_HEAD = 4;
/** The longest request; bytes. */
export const LONGEST_REQUEST = 2 << 20;
const NUMBERS = 4;
const WORDS = 2;
const FIXED = 4 + 1 + 1 + 8 * NUMBERS + 4 * WORDS;

/** Reads a request without its length. `undefined` if it is not one, or names what home could not. */
export function readRemoteRequest(frame: Buffer): RemoteRequest | undefined {
  if (frame.length < FIXED) return undefined;
  const call = REMOTE_CALLS[frame.readUInt8(4)];
  if (call === undefined) return undefined;
  const numbers = Array.from({ length: NUMBERS }, (_, i) => Number(frame.readBigInt64LE(6 + 8 * i)));
  if (!numbers.every(Number.isSafeInteger)) return undefined;
  const words: string[] = [];
  let at = FIXED;
  for (let i = 0; i < WORDS; i++) {
    const length = frame.readUInt32LE(6 + 8 * NUMBERS + 4 * i);
    if (length > frame.length - at) return undefined;
    const word = frame.toString('utf8', at, at + length);
    // It is not UTF-8, so it names nothing that could be sent home.
    if (word.includes('\uFFFD') || word.includes('\0')) return undefined;
    words.push(word);
    at += length;
  }
  return { call, n: frame.readUInt32LE(0), again: frame.readUInt8(5) !== 0, words, numbers, bytes: frame.subarray(at) };
}

/** An answer, in the pieces that are sent one after another. */
export function remoteAnswer(result: number, bytes: Uint8Array): readonly Uint8Array[] {
  const head = Buffer.alloc(REMOTE_HEAD + 8);
  head.writeUInt32LE(8 + bytes.length, 0);
  head.writeBigInt64LE(BigInt(Math.trunc(result)), REMOTE_HEAD);
  return bytes.length === 0 ? [head] : [head, bytes];
}
