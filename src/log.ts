import { createWriteStream, renameSync, statSync } from 'node:fs';
import pino, { type Logger } from 'pino';

export type { Logger };

/**
 * A daemon's own log: JSON lines in a file of its own, 0600, for us; users are told by events. The file is turned over
 * at start when it has grown beyond `maxBytes`; one old one is kept.
 */
export function openLog(file: string, level: string, maxBytes: number): Logger {
  try {
    if (statSync(file).size > maxBytes) renameSync(file, `${file}.old`);
  } catch {
    // There is none yet.
  }
  const stream = createWriteStream(file, { flags: 'a', mode: 0o600 });
  return pino({ level, base: { pid: process.pid } }, stream);
}
