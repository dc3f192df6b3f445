import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import * as z from 'zod';
import { ERRORS, type ErrorCode, GryphusError } from '../errors.ts';
import type { AskUser } from './types.ts';

const LINE = z.union([
  z.object({ ask: z.string(), echo: z.boolean() }),
  z.object({ done: z.literal(true) }),
  z.object({ error: z.string(), code: z.string(), suggestions: z.array(z.string()) }),
]);

/** Goes to the GridManager's desk and answers its questions for a site, so that its connection is open afterwards. */
export async function loginAtDesk(socketPath: string, site: string, ask: AskUser): Promise<void> {
  const socket = await reach(socketPath);
  try {
    socket.write(`${JSON.stringify({ login: site })}\n`);
    for await (const text of createInterface({ input: socket })) {
      const line = LINE.parse(JSON.parse(text));
      if ('done' in line) return;
      if ('error' in line) throw new GryphusError(codeOf(line.code), line.error, { suggestions: line.suggestions });
      const answer = await ask({ text: line.ask, echo: line.echo });
      socket.write(`${JSON.stringify({ answer: answer ?? null })}\n`);
    }
    throw new GryphusError('site-unreachable', 'The GridManager ended before the log-in was done.', {
      suggestions: ['Try again; its log is in the state directory.'],
    });
  } finally {
    socket.destroy();
  }
}

function codeOf(code: string): ErrorCode {
  return code in ERRORS ? (code as ErrorCode) : 'internal';
}

function reach(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once('connect', () => resolve(socket));
    socket.once('error', (cause) =>
      reject(
        new GryphusError('queue-unavailable', 'The GridManager is not there to log in with.', {
          cause,
          suggestions: ['Try again in a moment; see `gryphus status`.'],
        }),
      ),
    );
  });
}
