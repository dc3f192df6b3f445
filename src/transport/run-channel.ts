import type { Readable } from 'node:stream';
import { asError, GryphusError } from '../errors.ts';
import { deferred } from '../util/deferred.ts';
import type { Channel, RunOptions, RunResult } from './contract.ts';

/** Runs an opened command to its end: feeds it, gathers what it says, and gives it up on time-out or abort. */
export async function runChannel(
  open: () => Promise<Channel>,
  command: string,
  label: string,
  options: RunOptions = {},
): Promise<RunResult> {
  const { signal, timeoutMs } = options;
  let channel: Channel | undefined;
  const { promise: givenUp, reject: giveUp } = deferred<never>();
  // The race below may be over before this one is lost.
  givenUp.catch(() => undefined);
  const onAbort = (): void => giveUp(new GryphusError('interrupted', `"${brief(command)}" on ${label} was given up.`));
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
    // What is still opening is ended as soon as it is there.
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
  // A command that does not read all of its input is no failure.
  channel.stdin.on('error', () => undefined);
  channel.stdin.end(stdin ?? '');
  const [end, stdout, stderr] = await Promise.all([channel.closed, collect(channel.stdout), collect(channel.stderr)]);
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

/** Everything that a stream gives until it ends or is destroyed. */
async function collect(stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of stream) chunks.push(Buffer.from(chunk as Uint8Array));
  } catch (thrown) {
    // A cut stream: the channel's end tells why.
    void asError(thrown);
  }
  return Buffer.concat(chunks);
}

/** The first words of a command, for messages. */
export function brief(command: string): string {
  const line = command.trim().replace(/\s+/g, ' ');
  return line.length > 60 ? `${line.slice(0, 57)}...` : line;
}
