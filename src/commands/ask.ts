import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import type { AskUser } from '../index.ts';

/** Asks at the terminal without echoing secrets. Without a terminal there is no answer. */
export const askAtTerminal: AskUser = async ({ text, echo }, signal) => {
  if (!process.stdin.isTTY) return undefined;
  let hide = false;
  const output = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      if (!hide) process.stderr.write(chunk);
      done();
    },
  });
  const line = createInterface({ input: process.stdin, output, terminal: true });
  try {
    return await new Promise<string | undefined>((resolve) => {
      line.once('close', () => resolve(undefined));
      signal?.addEventListener('abort', () => line.close(), { once: true });
      line.once('SIGINT', () => {
        process.stderr.write('\n');
        process.exit(130);
      });
      line.question(text.endsWith(' ') ? text : `${text} `, resolve);
      hide = !echo;
    });
  } finally {
    line.close();
    if (!echo) process.stderr.write('\n');
  }
};
