import type { SFTPWrapper } from 'ssh2';

/** Length of the packet, its type, the request's number, and of DATA the length of what follows. */
const HEADER = 4 + 1 + 4 + 4;
const DATA = 103;

/** What ssh2 keeps of a request that waits for bytes. */
interface Waiting {
  readonly buffer?: Buffer | undefined;
  readonly cb: (error: undefined, buffer: Buffer, bytes: number) => void;
}

/** The part of ssh2's session that reads answers. */
interface Inside {
  push: (data: Buffer | null) => unknown;
  _requests: Record<number, Waiting>;
  /** How many bytes of a packet's length have come; 0 between two packets. */
  _pktLenBytes: number;
}

/**
 * Puts the bytes of answers to reads straight into the memory that was given for them. ssh2 gathers each answer of up to 256 KB in new memory before
 * it copies it there, which doubles the copying and makes garbage of as many bytes as come.
 */
export function readStraight(sftp: SFTPWrapper): void {
  const session: unknown = sftp;
  if (!isInside(session) || session._pktLenBytes !== 0) return;
  const push = session.push.bind(session);
  /** It has ended the session because of an answer that cannot be read; what still comes, it would take for another packet. */
  let faulty = false;
  const theirs = (some: Buffer): void => {
    faulty = push(some) === false;
  };
  const header = Buffer.alloc(HEADER);
  let got = 0;
  /** Bytes of the current packet that are still to come, and whose they are. */
  let left = 0;
  let reading: { readonly id: number; readonly into: Buffer; at: number } | undefined;

  /** How much of the current packet's header must come before anything is done. */
  const size = () => (got < 4 ? 4 : Math.min(HEADER, 4 + header.readUInt32BE(0)));

  /** The packet whose header has come is either an answer that is known here, or ssh2's. */
  const begin = (size: number): void => {
    got = 0;
    left = 4 + header.readUInt32BE(0) - size;
    const id = size === HEADER ? header.readUInt32BE(5) : -1;
    const bytes = size === HEADER ? header.readUInt32BE(9) : -1;
    const into = header[4] === DATA ? session._requests[id]?.buffer : undefined;
    if (into && bytes === left && bytes > 0 && bytes <= into.length) reading = { id, into, at: 0 };
    else theirs(Buffer.from(header.subarray(0, size)));
  };

  session.push = (data) => {
    if (data === null) return push(data);
    for (let p = 0; p < data.length; ) {
      if (faulty) break;
      if (left === 0) {
        const some = data.copy(header, got, p, p + size() - got);
        p += some;
        got += some;
        if (got >= 4 && got === size()) begin(got);
        continue;
      }
      const some = data.subarray(p, p + left);
      p += some.length;
      left -= some.length;
      if (!reading) theirs(some);
      else reading.at += some.copy(reading.into, reading.at);
      if (reading && left === 0) {
        const { id, into, at } = reading;
        reading = undefined;
        const request = session._requests[id];
        delete session._requests[id];
        request?.cb(undefined, into, at);
      }
    }
    return undefined;
  };
}

function isInside(session: unknown): session is Inside {
  const { push, _requests, _pktLenBytes } = session as Partial<Record<keyof Inside, unknown>>;
  return (
    typeof push === 'function' &&
    typeof _requests === 'object' &&
    _requests !== null &&
    typeof _pktLenBytes === 'number'
  );
}
