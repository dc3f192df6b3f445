import type { ServerResponse } from 'node:http';
import { failureOf } from './failure.ts';

/** Items that come at the same time are written together, up to this length; characters. */
const TOGETHER = 64 * 1024;

/**
 * Answers with a line of JSON for each item, `{"item":…}`, as it comes, and no faster than the client reads. The last line
 * is `{"end":true}`, or `{"error":{…}}`: an answer without it was cut off, which HTTP libraries may not tell.
 * Rejects with an error that came before the first item, unless the answer is `quiet`: it begins at once.
 */
export async function sendItems(
  items: AsyncIterable<string>,
  take: () => ServerResponse,
  quiet: boolean,
): Promise<void> {
  let response: ServerResponse | undefined;
  let held = '';
  let soon: NodeJS.Immediate | undefined;
  const begin = (): ServerResponse => {
    response = take();
    response.writeHead(200, { 'content-type': 'application/x-ndjson' }).flushHeaders();
    return response;
  };
  const flush = (): ServerResponse => {
    clearImmediate(soon);
    soon = undefined;
    const to = response ?? begin();
    if (held !== '') to.write(held);
    held = '';
    return to;
  };
  if (quiet) begin();
  let last = '{"end":true}\n';
  try {
    for await (const item of items) {
      held += `{"item":${item}}\n`;
      if (held.length >= TOGETHER) flush();
      else soon ??= setImmediate(flush);
      if (response?.writableNeedDrain) await drained(response);
      if (response?.destroyed) break;
    }
  } catch (thrown) {
    if (!response && held === '') throw thrown;
    last = `${JSON.stringify({ error: failureOf(thrown).body })}\n`;
  }
  if (response?.destroyed) return;
  held += last;
  flush().end();
}

/** Resolves when the reader has taken what was written, or is gone. */
export function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    if (response.destroyed) return resolve();
    const go = (): void => {
      response.off('drain', go).off('close', go);
      resolve();
    };
    response.on('drain', go).on('close', go);
  });
}
