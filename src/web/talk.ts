import type { ServerResponse } from 'node:http';
import * as z from 'zod';
import { asError, GryphusError } from '../errors.ts';
import { idOf } from './plan.ts';
import { checked } from './route.ts';
import type { Web } from './web.ts';

/** Bytes that may wait for a slow page. */
const MOST_WAITING = 256 * 1024;

const OUTPUT = z.object({
  stream: z.enum(['stdout', 'stderr']).default('stdout'),
  last: z.coerce
    .number()
    .int()
    .positive()
    .max(64 * 2 ** 20)
    .default(65_536),
  follow: z.stringbool().default(false),
});

/**
 * A job's output as it is written, as bytes: the last `last` of them and, with `follow`, what comes until the job ends.
 * What is wrong is said as by all other requests, with status 400 if the request itself is, or 404.
 */
export async function followOutput(response: ServerResponse, web: Web, job: string, asked: unknown): Promise<void> {
  const stop = new AbortController();
  response.once('close', () => stop.abort());
  try {
    const { stream, last, follow } = checked(OUTPUT, asked, 'the query');
    const bytes = web.gryphus.tail({ id: idOf(job), stream, follow, lastBytes: last, signal: stop.signal });
    let first = true;
    const begin = (): void => {
      if (first) response.writeHead(200, { 'content-type': 'application/octet-stream' }).flushHeaders();
      first = false;
    };
    // An output that is still empty must not look like a server that does not answer.
    const late = setTimeout(begin, 500);
    stop.signal.addEventListener('abort', () => clearTimeout(late));
    try {
      for await (const some of bytes) {
        begin();
        response.write(some);
        if (response.writableLength > MOST_WAITING) await drained(response);
      }
    } finally {
      clearTimeout(late);
    }
    begin();
  } catch (thrown) {
    if (!response.headersSent) {
      const { message } = asError(thrown);
      const { code, suggestions } = thrown instanceof GryphusError ? thrown : { code: 'not-found', suggestions: [] };
      response.writeHead(code === 'bad-input' ? 400 : 404, { 'content-type': 'application/json' });
      response.write(JSON.stringify({ code, message, suggestions }));
    }
  }
  response.end();
}

/** A log-in: its messages as lines of JSON (logins.ts); answers come by `POST /answers/:question`. */
export async function talkLogin(response: ServerResponse, web: Web, site: string): Promise<void> {
  const stop = new AbortController();
  response.once('close', () => stop.abort());
  response.writeHead(200, { 'content-type': 'application/x-ndjson' }).flushHeaders();
  await web.logins.run(site, (message) => response.write(`${JSON.stringify(message)}\n`), stop.signal);
  web.recent.forget('sites');
  response.end();
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    response.once('drain', resolve).once('close', resolve);
  });
}
