import { closeSync, existsSync, fstatSync, openSync, readSync, statSync, watch } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { StringDecoder } from 'node:string_decoder';
import { GryphusError } from '../errors.ts';
import type { UserLogEvent } from '../user-log/event.ts';
import { parseUserLog } from '../user-log/text.ts';
import { reasonOf } from '../util/plain-text.ts';

/** How long a change may go unnoticed if the file system does not report it (NFS), in milliseconds. */
const LOOK_AGAIN = 2000;

/**
 * The events of a user log. With `follow`, future events too, until `signal`, or until `atEnd`, which is asked each
 * time the end of the file is reached, says that it is enough. A GryphusError 'input-missing' if there is no such file.
 */
export async function* followLog(
  file: string,
  follow: boolean,
  signal: AbortSignal,
  atEnd: () => boolean = () => false,
): AsyncGenerator<UserLogEvent> {
  let fd = open(file);
  let decoder = new StringDecoder('utf8');
  let text = '';
  let offset = 0;
  const buffer = Buffer.alloc(65_536);
  let wake = (): void => undefined;
  const watcher = follow ? watch(dirname(file) || '.', { signal }, () => wake()) : undefined;
  watcher?.on('error', () => undefined);
  const aborted = (): void => wake();
  signal.addEventListener('abort', aborted);
  try {
    for (;;) {
      for (let read = 1; read > 0; ) {
        read = readSync(fd, buffer, 0, buffer.length, offset);
        offset += read;
        text += decoder.write(buffer.subarray(0, read));
        const { events, taken } = parseUserLog(text);
        text = text.slice(taken);
        yield* events;
      }
      if (!follow || signal.aborted || atEnd()) return;
      if (isReplaced(fd, file, offset)) {
        closeSync(fd);
        fd = open(file);
        decoder = new StringDecoder('utf8');
        text = '';
        offset = 0;
        continue;
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, LOOK_AGAIN);
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  } finally {
    signal.removeEventListener('abort', aborted);
    watcher?.close();
    closeSync(fd);
  }
}

/** Waits until the file exists, or until `signal`. */
export async function untilThere(file: string, signal: AbortSignal): Promise<void> {
  while (!existsSync(file) && !signal.aborted) {
    const changed = new AbortController();
    const either = AbortSignal.any([signal, changed.signal]);
    const watcher = watch(dirname(file) || '.', { signal: either }, () => changed.abort());
    watcher.on('error', () => undefined);
    // It may have come before the watch.
    if (!existsSync(file)) await sleep(LOOK_AGAIN, undefined, { signal: either }).catch(() => undefined);
    changed.abort();
  }
}

/** Whether the file was rotated or started anew. */
function isReplaced(fd: number, file: string, offset: number): boolean {
  try {
    const mine = fstatSync(fd);
    const there = statSync(file);
    return there.ino !== mine.ino || there.size < offset;
  } catch {
    return false;
  }
}

function open(file: string): number {
  try {
    return openSync(file, 'r');
  } catch (cause) {
    throw new GryphusError('input-missing', `Couldn't open ${file}: ${reasonOf(cause)}.`, { cause });
  }
}
