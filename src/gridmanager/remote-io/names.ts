import { constants } from 'node:fs';
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
      for (let from = 0; from < names.length; from += AT_ONCE) {
        if (size > LIST_PIECE) return { result: 1, bytes: Buffer.concat(parts) };
        const some = names.slice(from, from + AT_ONCE);
        for (const part of await Promise.all(some.map((name) => entry(inside, name)))) {
          parts.push(...part);
          size += part.reduce((sum, one) => sum + one.length, 0);
        }
      }
      return { result: 0, bytes: Buffer.concat(parts) };
    } finally {
      await directory.close();
    }
  });
}

async function entry(inside: string, name: string): Promise<readonly Buffer[]> {
  const found = await lstat(`${inside}/${name}`, { bigint: true }).catch(() => undefined);
  if (!found) return [];
  const bytes = Buffer.from(name);
  const length = Buffer.alloc(2);
  length.writeUInt16LE(bytes.length);
  return [length, bytes, statusOf(found)];
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
      if (nanoseconds === REMOTE_TIME.now) return Date.now() / 1000;
      return nanoseconds === REMOTE_TIME.omit ? before / 1000 : number(asked, first) + nanoseconds / 1e9;
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
