import { closeSync, openSync, renameSync, statSync, writeSync } from 'node:fs';
import pino, { type Logger } from 'pino';

export type { Logger };

/**
 * A daemon's own log: JSON lines in its own file (0600), for developers; users are told by events. At start, a file
 * beyond `maxBytes` is rotated, then and while it grows, and one old file is kept. When the disk is full, log lines are dropped
 * rather than ending the daemon.
 */
export function openLog(file: string, level: string, maxBytes: number): Logger {
  let fd: number | undefined;
  let size = sizeOf(file);
  const rotate = (): void => {
    if (fd !== undefined) closeSync(fd);
    fd = undefined;
    size = 0;
    renameSync(file, `${file}.old`);
  };
  const write = (line: string): void => {
    try {
      if (size > maxBytes) rotate();
      fd ??= openSync(file, 'a', 0o600);
      size += writeSync(fd, line);
    } catch {
      // The disk is full.
    }
  };
  return pino({ level, base: { pid: process.pid } }, { write });
}

/** 0 if there is none, or it cannot be looked at. */
function sizeOf(file: string): number {
  try {
    return statSync(file).size;
  } catch {
    return 0;
  }
}
