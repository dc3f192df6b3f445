import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import * as z from 'zod';
import type { Paths } from '../config/paths.ts';
import { ERRORS, type ErrorCode, GryphusError } from '../errors.ts';
import { loginSocketPath } from '../config/login-socket-path.ts';
import { LOGIN_KEPT_MS, stayUntil } from '../queue/stay.ts';
import type { Queue } from '../queue/api.ts';
import type { AskUser } from './types.ts';

const LINE = z.union([
  z.object({ ask: z.string(), echo: z.boolean() }),
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

/** Answers the site's questions through the GridManager's login socket, so that its connection is open afterwards. */
async function loginAtSocket(socketPath: string, site: string, ask: AskUser): Promise<void> {
  const socket = await reachSoon(socketPath);
  try {
    socket.write(`${JSON.stringify({ login: site })}\n`);
    const lines = createInterface({ input: socket })[Symbol.asyncIterator]();
    for (let next = await lines.next(); !next.done; ) {
      const line = LINE.parse(JSON.parse(next.value));
      if ('done' in line) return;
      if ('error' in line) throw new GryphusError(codeOf(line.code), line.error, { suggestions: line.suggestions });
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

function codeOf(code: string): ErrorCode {
  return code in ERRORS ? (code as ErrorCode) : 'internal';
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
