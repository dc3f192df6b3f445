import { constants } from 'node:os';
import type { HomeAnswer } from '../site/chirp.ts';
import type { Incoming } from './incoming.ts';
import { LONGEST_REQUEST, readRemoteRequest, REMOTE_HEAD, remoteAnswer, type RemoteRequest } from './remote-frames.ts';

/** A connection of a job's gryphus-remote-io, from its name on. */
export interface RemoteSessionOptions {
  readonly incoming: Incoming;
  /** Asks the job's home, and waits for it while it is away. */
  readonly ask: (request: RemoteRequest) => Promise<HomeAnswer>;
  readonly write: (pieces: readonly Uint8Array[]) => Promise<void>;
  /** Answers a read by a connection of its own with home; false if there is none, and nothing was written. */
  readonly direct?: (request: readonly Uint8Array[], wanted: number) => Promise<boolean>;
}

const EMPTY = Buffer.alloc(0);

/** Answers its requests, one after another, until it ends the connection or sends what is not a request. */
export async function runRemoteSession({ incoming, ask, write, direct }: RemoteSessionOptions): Promise<void> {
  for (;;) {
    const head = await incoming.bytes(REMOTE_HEAD);
    if (head.length < REMOTE_HEAD) return;
    const length = head.readUInt32LE(0);
    if (length > LONGEST_REQUEST) return;
    const frame = await incoming.bytes(length);
    if (frame.length < length) return;
    const request = readRemoteRequest(frame);
    if (request?.call === 'read' && (await direct?.([head, frame], request.numbers[1] ?? 0))) continue;
    const { result, bytes = EMPTY } = request ? await ask(request) : { result: -constants.errno.EILSEQ };
    await write(remoteAnswer(result, bytes));
  }
}
