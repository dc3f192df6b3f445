import { type BigIntStats, constants, lstatSync } from 'node:fs';
import {
  lchown,
  link,
  lstat,
  lutimes,
  mkdir,
  open,
  readdir,
  readlink,
  rename,
  rmdir,
  symlink,
  unlink,
} from 'node:fs/promises';
import { REMOTE_TIME, statusOf } from '../../site/remote-io.ts';
import { SystemError } from '../chirp/beneath.ts';
import { allowed, type Answer, at, both, keepAnchor, OK, openedAny, SAFE, there } from '../chirp/held.ts';
import { makeOnce, takeOnce } from '../chirp/once.ts';
import { type Asked, number, status } from './asked.ts';

/** A list of names is sent in pieces of about this size; bytes. */
const LIST_PIECE = 1 << 20;
const AT_ONCE = 64;
/** A file system on which so many take longer is asked without waiting for it. */
const SLOW_MS = 50;

/** Names in their order, with their states. */
export function list(asked: Asked): Answer {
  return at(asked, true, async ({ path }) => {
    const directory = await open(path, constants.O_DIRECTORY | SAFE);
    try {
      const inside = `/proc/self/fd/${directory.fd}`;
      // A name that is not UTF-8 could not be asked for.
      const names = (await readdir(inside)).filter((name) => !name.includes('\uFFFD') && name > asked.to).sort();
      const parts: Buffer[] = [];
      let size = 0;
      let slow = false;
      for (let from = 0; from < names.length; from += AT_ONCE) {
        if (size > LIST_PIECE) return { result: 1, bytes: Buffer.concat(parts) };
        const some = names.slice(from, from + AT_ONCE);
        const began = performance.now();
        const found = slow
          ? await Promise.all(some.map((name) => lstat(`${inside}/${name}`, { bigint: true }).catch(() => undefined)))
          : some.map((name) => stateNow(`${inside}/${name}`));
        slow ||= performance.now() - began > SLOW_MS;
        for (const [i, name] of some.entries()) {
          const part = entry(name, found[i]);
          parts.push(part);
          size += part.length;
        }
        await new Promise(setImmediate);
      }
      return { result: 0, bytes: Buffer.concat(parts) };
    } finally {
      await directory.close();
    }
  });
}

/** A fifth of the processor time that asking for it in another thread takes, but all else waits. */
function stateNow(path: string): BigIntStats | undefined {
  try {
    return lstatSync(path, { bigint: true });
  } catch {
    return undefined;
  }
}

/** Nothing if it is gone. */
function entry(name: string, found: BigIntStats | undefined): Buffer {
  if (!found) return Buffer.alloc(0);
  const bytes = Buffer.from(name);
  const length = Buffer.alloc(2);
  length.writeUInt16LE(bytes.length);
  return Buffer.concat([length, bytes, statusOf(found)]);
}

export function remove(asked: Asked, directory: boolean): Answer {
  return at(asked, false, async ({ path, name }) => {
    if (name === '.') throw new SystemError('EBUSY');
    await takeOnce(asked, path, async () => {
      if (directory) keepAnchor(asked, await lstat(path));
      await (directory ? rmdir(path) : unlink(path));
    });
    return OK;
  });
}

export function makeDirectory(asked: Asked): Answer {
  return at(asked, false, async ({ path }) => {
    const made = await makeOnce(asked, path, () => mkdir(path, { mode: number(asked, 0) & 0o777 }));
    return { result: 0, bytes: statusOf(made) };
  });
}

export function move(asked: Asked): Answer {
  return both(asked, (from, to) =>
    takeOnce(asked, from, async () => {
      if (number(asked, 0) !== 0 && (await there(to))) throw new SystemError('EEXIST');
      keepAnchor(asked, await lstat(from));
      await rename(from, to);
    }),
  );
}

export function hardLink(asked: Asked): Answer {
  return both(asked, (from, to) => makeOnce(asked, to, () => link(from, to)));
}

export function softLink(asked: Asked): Answer {
  const target = asked.path;
  // A target that goes up could lead out when the link or a directory above it is moved.
  if (target.startsWith('/') || target.split('/').includes('..')) throw new SystemError('EACCES');
  return at({ ...asked, path: asked.to }, false, async ({ path }) => {
    await makeOnce(asked, path, () => symlink(target, path));
    return OK;
  });
}

export function readLink(asked: Asked): Answer {
  return at(asked, false, async ({ path }) => {
    const bytes = await readlink(path, 'buffer');
    return { result: bytes.length, bytes };
  });
}

export function chmod(asked: Asked): Answer {
  return openedAny(asked, async (file) => {
    keepAnchor(asked, await file.stat());
    await file.chmod(number(asked, 0) & 0o777);
    return status(file);
  });
}

export function chown(asked: Asked): Answer {
  return at(asked, number(asked, 2) !== 0, async ({ path }) => {
    keepAnchor(asked, await lstat(path));
    await lchown(path, number(asked, 0), number(asked, 1));
    return { result: 0, bytes: statusOf(await lstat(path, { bigint: true })) };
  });
}

export function setTimes(asked: Asked): Answer {
  return at(asked, asked.to !== '0', async ({ path }) => {
    const found = await lstat(path);
    const time = (first: number, before: number) => {
      const nanoseconds = number(asked, first + 1);
      // What is touched is newer than what was written before.
      if (nanoseconds === REMOTE_TIME.now) return (Date.now() + 1) / 1000;
      if (nanoseconds === REMOTE_TIME.omit) return before / 1000;
      // The system's call cuts off what is less than a microsecond; a copy would be older than its original.
      return number(asked, first) + (Math.ceil(nanoseconds / 1000) + 0.25) / 1e6;
    };
    await lutimes(path, time(0, found.atimeMs), time(2, found.mtimeMs));
    return { result: 0, bytes: statusOf(await lstat(path, { bigint: true })) };
  });
}

export function access(asked: Asked, writable: boolean): Answer {
  return at(asked, true, async ({ path }) => {
    if ((number(asked, 0) & 2) !== 0 && !writable) throw new SystemError('EROFS');
    return allowed(await lstat(path), number(asked, 0));
  });
}
