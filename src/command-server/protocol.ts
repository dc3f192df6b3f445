import { HANG_UP_VARIABLE } from '../util/hang-up.ts';

/** What the client (native/command-client/) sends: the place that a command is to run in, and its words. */
export interface Request {
  readonly umask: number;
  /** Whether its outputs are terminals; columns of the first, 0 if unknown. */
  readonly stdout: boolean;
  readonly stderr: boolean;
  readonly columns: number;
  readonly cwd: string;
  /** The program that the client runs if it is not served. */
  readonly script: string;
  readonly words: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** The kinds of frames of an answer. */
export const FRAME = { taken: 0, stdout: 1, stderr: 2, status: 3, elsewhere: 4 } as const;

const PROTOCOL = '1';
/** The client sends no more. */
const MOST = 1 << 20;
const HEAD = 5;

/** The bytes that a request needs in all; `undefined` if its first bytes do not say it yet. Infinite if no client sends that. */
export function lengthOf(bytes: Buffer): number | undefined {
  if (bytes.length < 4) return undefined;
  const length = bytes.readUInt32LE(0);
  return length > MOST ? Number.POSITIVE_INFINITY : 4 + length;
}

/** The request in these bytes; `undefined` if it is none of this protocol, or its words are no text (UTF-8). */
export function parseRequest(bytes: Buffer): Request | undefined {
  const fields = textOf(bytes.subarray(4))?.split('\0');
  if (fields === undefined || fields.pop() !== '' || fields[0] !== PROTOCOL) return undefined;
  const [, umask = '', stdout, stderr, columns, cwd, count, ...rest] = fields;
  const words = rest.slice(0, Number(count));
  const [script, ...more] = words;
  if (!/^[0-7]{1,4}$/.test(umask) || !cwd?.startsWith('/') || script === undefined) return undefined;
  return {
    umask: Number.parseInt(umask, 8),
    stdout: stdout === '1',
    stderr: stderr === '1',
    columns: Number(columns),
    cwd,
    script,
    words: more,
    env: Object.fromEntries(
      rest.slice(words.length).flatMap((pair) => {
        const at = pair.indexOf('=');
        // It is about its caller.
        if (pair.startsWith(`${HANG_UP_VARIABLE}=`)) return [];
        return at > 0 ? [[pair.slice(0, at), pair.slice(at + 1)]] : [];
      }),
    ),
  };
}

/** Other bytes would be changed by the way through a string. */
function textOf(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** `content`: what was written, or the exit status. */
export function frame(kind: keyof typeof FRAME, content: Buffer | number = 0): Buffer {
  const head = Buffer.alloc(HEAD);
  head.writeUInt8(FRAME[kind]);
  head.writeUInt32LE(typeof content === 'number' ? content : content.length, 1);
  return typeof content === 'number' ? head : Buffer.concat([head, content]);
}
