import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import * as z from 'zod';
import type { Paths } from '../config/paths.ts';
import { ERRORS, type ErrorCode, GryphusError } from '../errors.ts';
import { loginSocketPath } from '../config/manager-sockets.ts';
import { LOGIN_KEPT_MS, stayUntil } from '../queue/stay.ts';
import type { Queue } from '../queue/api.ts';
import { interrupted } from '../site-check/steps.ts';
import type { AskUser, CheckStep } from './types.ts';

const LINE = z.union([
  z.object({ ask: z.string(), echo: z.boolean() }),
  z.object({
    step: z.object({ step: z.string(), ok: z.boolean(), message: z.string(), remedy: z.string().exactOptional() }),
  }),
  z.object({ done: z.literal(true) }),
  z.object({ error: z.string(), code: z.string(), suggestions: z.array(z.string()) }),
]);

/** How long a GridManager may take to start, in milliseconds. */
const START_MS = 30_000;

/**
 * Opens a site's connection in the GridManager of this identity, starting one if needed, and keeps it for 8 hours
 * without work (with work, as long as there is some).
 */
export async function logIn(
  queue: Queue,
  paths: Pick<Paths, 'socketDir'>,
  identity: string,
  site: string,
  ask: AskUser,
): Promise<void> {
  await stayUntil(queue, identity, Date.now() + 2 * START_MS);
  await loginAtSocket(loginSocketPath(paths, identity), site, ask);
  await stayUntil(queue, identity, Date.now() + LOGIN_KEPT_MS);
}

/**
 * The steps of `gryphus site test` over the connection of the GridManager of this identity; none if it runs not, or is
 * not logged in to the site. Rejects with 'interrupted' when the signal ends it.
 */
export async function* checkThroughLogin(
  paths: Pick<Paths, 'socketDir'>,
  identity: string,
  site: string,
  signal?: AbortSignal,
): AsyncGenerator<CheckStep> {
  const socket = await reach(loginSocketPath(paths, identity)).catch(() => undefined);
  if (!socket) return;
  // The GridManager takes its trial job back when the socket closes.
  const end = () => socket.destroy();
  signal?.addEventListener('abort', end, { once: true });
  if (signal?.aborted) end();
  try {
    socket.write(`${JSON.stringify({ test: site })}\n`);
    for await (const text of createInterface({ input: socket })) {
      const line = LINE.parse(JSON.parse(text));
      if ('step' in line) yield line.step;
      else if ('error' in line && line.code !== 'needs-login') throw told(line);
      else return;
    }
    signal?.throwIfAborted();
    throw new GryphusError('site-unreachable', 'The GridManager ended before the test was complete.', {
      suggestions: ['Try again; its log is in the state directory.'],
    });
  } catch (thrown) {
    throw signal?.aborted ? interrupted() : thrown;
  } finally {
    signal?.removeEventListener('abort', end);
    socket.destroy();
  }
}

/** Answers the site's questions through the GridManager's login socket, so that its connection is open afterwards. */
async function loginAtSocket(socketPath: string, site: string, ask: AskUser): Promise<void> {
  const socket = await reachSoon(socketPath);
  try {
    socket.write(`${JSON.stringify({ login: site })}\n`);
    const lines = createInterface({ input: socket })[Symbol.asyncIterator]();
    for (let next = await lines.next(); !next.done; ) {
      const line = LINE.parse(JSON.parse(next.value));
      if ('done' in line) return;
      if ('error' in line) throw told(line);
      if (!('ask' in line)) throw new GryphusError('protocol-error', 'The GridManager sent an unexpected line.');
      // The server may close the connection while the user still looks for the code.
      const coming = lines.next();
      const stop = new AbortController();
      const asked = ask({ text: line.ask, echo: line.echo }, stop.signal);
      const answered = await Promise.race([asked.then((answer) => ({ answer })), coming]);
      if ('answer' in answered) socket.write(`${JSON.stringify({ answer: answered.answer ?? null })}\n`);
      else stop.abort();
      next = await coming;
    }
    throw new GryphusError('site-unreachable', 'The GridManager ended before the log-in was complete.', {
      suggestions: ['Try again; its log is in the state directory.'],
    });
  } finally {
    socket.destroy();
  }
}

type Refusal = Extract<z.infer<typeof LINE>, { error: string }>;

function told({ error, code, suggestions }: Refusal): GryphusError {
  return new GryphusError(code in ERRORS ? (code as ErrorCode) : 'internal', error, { suggestions });
}

async function reachSoon(path: string): Promise<Socket> {
  const deadline = Date.now() + START_MS;
  for (;;) {
    try {
      return await reach(path);
    } catch (thrown) {
      if (Date.now() > deadline) throw thrown;
      await sleep(50);
    }
  }
}

function reach(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once('connect', () => resolve(socket));
    socket.once('error', (cause) =>
      reject(
        new GryphusError('queue-unavailable', 'No GridManager is running that could log in.', {
          cause,
          suggestions: ['Try again in a moment; see `gryphus status`.'],
        }),
      ),
    );
  });
}
