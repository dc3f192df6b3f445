import { timingSafeEqual } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { GryphusError } from '../errors.ts';
import type { Way } from './home.ts';
import { reach } from './reach.ts';
import { acceptHome, type AcceptOptions, greetHome, type Guest } from './secure.ts';

/**
 * Connections of a worker that are not its one with the central manager come by the same ways, and begin with a line: a greeting, and in a
 * socket file, where only the owner's processes are at either end, NAME and SECRET. By a port they go on with TLS by that
 * secret. Neither TLS nor a frame (src/pool/wire/frames.ts), by which all others begin, begins so.
 */
export const GREETING = {
  /** For the GridManager, which keeps it and passes on all others: a job's reads of files at home. */
  reads: 'gryphus-direct',
  /** For the central manager: the large files of one attempt. */
  staging: 'gryphus-staging',
} as const;
export type Greeting = (typeof GREETING)[keyof typeof GREETING];

const LONGEST_LINE = 256;
const PATIENCE_MS = 20_000;

/** By what a connection is known. */
export interface DirectKey {
  readonly name: string;
  /** 32 bytes in hexadecimal. */
  readonly secret: string;
}

export type DirectWay = Exclude<Way, { readonly kind: 'mailbox' }>;

/** Connects by one way. Rejects if it cannot; whoever does not know the key just ends the connection. */
export async function dialDirect(
  way: DirectWay,
  { name, secret }: DirectKey,
  greeting: Greeting = GREETING.reads,
): Promise<Duplex> {
  if (way.kind === 'socket')
    return greetDirect(await reach({ path: way.path }, PATIENCE_MS), { name, secret }, greeting);
  const raw = await reach({ host: way.host, port: way.port }, PATIENCE_MS);
  raw.write(`${greeting}\n`);
  return greetHome(raw, { worker: name, key: Buffer.from(secret, 'hex'), patienceMs: PATIENCE_MS });
}

/** Greets over what nobody else can read. */
export function greetDirect(raw: Duplex, { name, secret }: DirectKey, greeting: Greeting): Duplex {
  raw.write(`${greeting} ${name} ${secret}\n`);
  return raw;
}

/** Whether a new connection begins with the greeting, of which nothing is taken. One that ends before that can be seen is closed. */
export async function isDirect(raw: Duplex, greeting: Greeting = GREETING.reads): Promise<boolean> {
  const word = Buffer.from(greeting);
  const begins = (all: Buffer) => word.equals(all.subarray(0, word.length));
  const got = await begin(raw, (all) =>
    all.length >= word.length || !word.subarray(0, all.length).equals(all) ? 0 : undefined,
  );
  if (!got) raw.destroy();
  return got !== undefined && begins(got);
}

/** The other end. For a stranger, rejects with 'login-refused' and closes `raw`. */
export async function acceptDirect(
  raw: Duplex,
  options: AcceptOptions,
  greeting: Greeting = GREETING.reads,
): Promise<Guest> {
  const late = setTimeout(() => raw.destroy(), options.patienceMs ?? PATIENCE_MS);
  const got = await begin(raw, (all) => {
    const end = all.indexOf('\n');
    return end >= 0 ? end + 1 : all.length > LONGEST_LINE ? all.length : undefined;
  });
  clearTimeout(late);
  const [word, name = '', secret = ''] = (got?.toString('latin1').split('\n', 1)[0] ?? '').split(' ');
  if (word === greeting && name === '') return acceptHome(raw, options);
  const key = options.keyOf(name);
  const shown = Buffer.from(secret, 'hex');
  if (word === greeting && key?.length === shown.length && timingSafeEqual(key, shown))
    return { worker: name, link: raw };
  raw.destroy();
  throw new GryphusError('login-refused', 'A connection without the key of a running job was refused.');
}

/** What comes first, when `taken` says how much of it is taken; the rest is put back. `undefined` if it ends before. */
function begin(raw: Duplex, taken: (all: Buffer) => number | undefined): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    let all: Buffer = Buffer.alloc(0);
    const end = (got: Buffer | undefined) => {
      raw.off('readable', look);
      for (const event of ENDS) raw.off(event, over);
      resolve(got);
    };
    const over = () => end(undefined);
    const look = () => {
      for (let some; (some = raw.read() as Buffer | null) !== null; ) all = Buffer.concat([all, some]);
      const count = all.length > 0 ? taken(all) : undefined;
      if (count === undefined) return;
      // At once: in the next turn, its end may have been told, and then nothing can be put back.
      if (count < all.length) raw.unshift(all.subarray(count));
      end(all);
    };
    raw.on('readable', look);
    for (const event of ENDS) raw.on(event, over);
    look();
  });
}

const ENDS = ['end', 'close', 'error'] as const;
