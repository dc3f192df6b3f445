import type { ServerResponse } from 'node:http';
import type { TailRequest } from '../index.ts';
import { drained } from './items.ts';
import type { Web } from './web.ts';

/** Bytes that may wait for a slow page. */
const MOST_WAITING = 256 * 1024;

/**
 * A job's output as it is written, as bytes: the last `last` of them and, with `follow`, what comes until the job ends.
 * Rejects with what went wrong before the first byte; later, the answer just ends.
 */
export async function followOutput(
  take: () => ServerResponse,
  { gryphus }: Web,
  request: TailRequest & { readonly signal: AbortSignal },
): Promise<void> {
  let response: ServerResponse | undefined;
  const begin = (): ServerResponse => {
    if (response) return response;
    response = take();
    response.writeHead(200, { 'content-type': 'application/octet-stream' }).flushHeaders();
    return response;
  };
  // An output that is still empty must not look like a server that does not answer.
  const late = setTimeout(begin, 500);
  request.signal.addEventListener('abort', () => clearTimeout(late));
  try {
    for await (const some of gryphus.tail(request)) {
      const to = begin();
      to.write(some);
      if (to.writableLength > MOST_WAITING) await drained(to);
    }
  } catch (thrown) {
    if (!response) throw thrown;
  } finally {
    clearTimeout(late);
  }
  begin().end();
}

/** A log-in: its messages as lines of JSON (logins.ts); answers come by `POST /answers/:question`. */
export async function talkLogin(response: ServerResponse, web: Web, site: string, signal: AbortSignal): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/x-ndjson' }).flushHeaders();
  await web.logins.run(site, (message) => response.write(`${JSON.stringify(message)}\n`), signal);
  web.recent.forget('sites');
  response.end();
}
