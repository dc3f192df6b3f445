import { openSync, renameSync, statSync, writeSync } from 'node:fs';
import pino, { type Logger } from 'pino';

export type { Logger };

/**
 * A daemon's own log: JSON lines in its own file (0600), for developers; users are told by events. At start, a file
 * beyond `maxBytes` is rotated, and one old file is kept. When the disk is full, log lines are dropped rather than
 * ending the daemon.
 */
export function openLog(file: string, level: string, maxBytes: number): Logger {
  try {
    if (statSync(file).size > maxBytes) renameSync(file, `${file}.old`);
  } catch {
    // There is no log yet.
  }
  let fd: number | undefined;
  const write = (line: string): void => {
    try {
      fd ??= openSync(file, 'a', 0o600);
      writeSync(fd, line);
    } catch {
      // The disk is full.
    }
  };
  return pino({ level, base: { pid: process.pid } }, { write });
}
