import { openSync, renameSync, statSync, writeSync } from 'node:fs';
import pino, { type Logger } from 'pino';

export type { Logger };

/**
 * A daemon's own log: JSON lines in a file of its own, 0600, for us; users are told by events. The file is turned over
 * at start when it has grown beyond `maxBytes`; one old one is kept. What finds no room on the disk is not logged: a daemon
 * does not end for it.
 */
export function openLog(file: string, level: string, maxBytes: number): Logger {
  try {
    if (statSync(file).size > maxBytes) renameSync(file, `${file}.old`);
  } catch {
    // There is none yet.
  }
  let fd: number | undefined;
  const write = (line: string): void => {
    try {
      fd ??= openSync(file, 'a', 0o600);
      writeSync(fd, line);
    } catch {
      // No room.
    }
  };
  return pino({ level, base: { pid: process.pid } }, { write });
}
