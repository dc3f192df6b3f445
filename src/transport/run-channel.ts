import type { Readable } from 'node:stream';
import { asError, GryphusError } from '../errors.ts';
import { deferred } from '../util/deferred.ts';
import type { Channel, RunOptions, RunResult } from './contract.ts';

/** The most output of a command, in bytes: a few times as much as the longest, a round of letters. */
const MOST_OUTPUT = 64 << 20;
/** How much of its standard error is kept. */
const MOST_ERRORS = 1 << 20;

/**
 * Runs an opened command until it ends: writes its input, collects its output, and gives it up on timeout or abort, or
 * with 'protocol-error' if its output does not end.
 */
export async function runChannel(
  open: () => Promise<Channel>,
  command: string,
  label: string,
  options: RunOptions = {},
): Promise<RunResult> {
  const { signal, timeoutMs } = options;
  let channel: Channel | undefined;
  const { promise: givenUp, reject: giveUp } = deferred<never>();
  // Avoids an unhandled rejection if this happens after the race below.
  givenUp.catch(() => undefined);
  const onAbort = (): void => giveUp(new GryphusError('interrupted', `"${brief(command)}" on ${label} was cancelled.`));
  const timer =
    timeoutMs === undefined
      ? undefined
      : setTimeout(() => {
          giveUp(
            new GryphusError('timeout', `"${brief(command)}" on ${label} took longer than ${timeoutMs / 1000} s.`),
          );
        }, timeoutMs);
  if (signal?.aborted) onAbort();
  signal?.addEventListener('abort', onAbort, { once: true });
  const opening = open();
  try {
    channel = await Promise.race([opening, givenUp]);
    return await Promise.race([gather(channel, command, label, options.stdin), givenUp]);
  } catch (thrown) {
    // A channel that is still opening is killed once it is open.
    opening.then(
      (late) => late.kill(),
      () => undefined,
    );
    throw thrown;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
  }
}

async function gather(
  channel: Channel,
  command: string,
  label: string,
  stdin: string | Uint8Array | undefined,
): Promise<RunResult> {
  // A command may end without reading all of its input.
  channel.stdin.on('error', () => undefined);
  channel.stdin.end(stdin ?? '');
  const tooMuch = (): never => {
    throw new GryphusError(
      'protocol-error',
      `"${brief(command)}" on ${label} printed more than ${MOST_OUTPUT >> 20} MB.`,
    );
  };
  const [end, stdout, stderr] = await Promise.all([
    channel.closed,
    collect(channel.stdout, MOST_OUTPUT, tooMuch),
    collect(channel.stderr, MOST_ERRORS, () => undefined),
  ]);
  switch (end.kind) {
    case 'exited':
      return { code: end.code, signal: undefined, stdout, stderr };
    case 'signaled':
      return { code: undefined, signal: end.signal, stdout, stderr };
    case 'lost':
      throw new GryphusError('site-unreachable', `The connection to ${label} was lost while "${brief(command)}" ran.`, {
        cause: end.reason,
      });
  }
}

/** What a stream yields until it ends or is destroyed; beyond `most` bytes, `tooMuch` decides and the rest is dropped. */
async function collect(stream: Readable, most: number, tooMuch: () => void): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of untilCut(stream)) {
    size += chunk.length;
    if (size <= most) chunks.push(chunk);
    else tooMuch();
  }
  return Buffer.concat(chunks);
}

/** If the stream is cut, the channel's end tells why. */
async function* untilCut(stream: Readable): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of stream) yield Buffer.from(chunk as Uint8Array);
  } catch (thrown) {
    void asError(thrown);
  }
}

/** The beginning of a command, for messages. */
export function brief(command: string): string {
  const line = command.trim().replace(/\s+/g, ' ');
  return line.length > 60 ? `${line.slice(0, 57)}...` : line;
}
