import { type BigIntStats, constants, type Stats } from 'node:fs';
import {
  lchown,
  link,
  lstat,
  mkdir,
  open,
  readdir,
  readlink,
  rename,
  rmdir,
  statfs,
  symlink,
  unlink,
} from 'node:fs/promises';
import { CHIRP_PIECE, type HomeAnswer, type HomeOp, type HomeRequest } from '../../site/chirp.ts';
import { type Place, SystemError } from './beneath.ts';
import {
  allowed,
  type Answer,
  at,
  both,
  type Call,
  type FilesOptions,
  keepAnchor,
  OK,
  opened,
  openedAny,
  SAFE,
  writeAll,
} from './held.ts';
import { appendOnce, makeOnce, makesOnce, takeOnce } from './once.ts';
import { SEARCHED } from './secrets.ts';

const { O_RDONLY, O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_EXCL, O_APPEND } = constants;
/** How deep a directory may be that is removed as a whole. */
const DEEPEST = 64;
/** A longer list of names is refused; bytes. The frames between the pool's processes have an end, and so has memory. */
const LONGEST_LIST = 4 << 20;
/** A transfer in more strides is refused: each is a call of its own. */
const MOST_STRIDES = 4096;

/** The requests about files: each opens what it needs and closes it, so that nothing has to survive a restart. */
export const FILE_OPS: Partial<Readonly<Record<HomeOp, (call: Call) => Answer>>> = {
  open: async (call) => {
    const flags = flagsOf(call.to);
    // Its first try may have created it.
    const wanted = (found: BigIntStats | undefined) =>
      (flags & O_CREAT) !== 0 && makesOnce(call, found) && call.before ? flags & ~O_EXCL : flags;
    return opened(call, wanted, call.numbers[0], async (file) => {
      // The reading itself is refused again later: this is for whoever only opens a file.
      if ((flags & (O_WRONLY | O_RDWR)) === O_RDONLY && (await call.secrets.hasKey(file)))
        throw new SystemError('EACCES');
      return { result: 0, bytes: Buffer.from(statLine(await file.stat())) };
    });
  },
  read: (call) =>
    opened(call, O_RDONLY, 0, async (file) => {
      const [length = 0, offset = 0, stride = length, skip = stride] = call.numbers;
      if (await call.secrets.hasKey(file)) throw new SystemError('EACCES');
      const bytes = Buffer.alloc(atMost(length));
      let got = 0;
      for (const [from, to, at] of strides(bytes.length, offset, stride, skip)) {
        const { bytesRead } = await file.read(bytes, from, to - from, at);
        got += bytesRead;
        if (bytesRead < to - from) break;
      }
      return { result: got, bytes: bytes.subarray(0, got) };
    }),
  write: (call) =>
    opened(call, O_RDWR, 0, async (file) => {
      const [offset = 0, stride = call.bytes.length, skip = stride] = call.numbers;
      // Whoever writes over the words by which a key is known could then read the key.
      const { size } = await file.stat();
      if (offset < Math.min(size, SEARCHED) && (await call.secrets.hasKey(file))) throw new SystemError('EACCES');
      for (const [from, to, at] of strides(call.bytes.length, offset, stride, skip))
        await writeAll(file, call.bytes.subarray(from, to), at);
      return { result: call.bytes.length };
    }),
  append: (call) =>
    opened(call, call.before ? O_RDWR | O_APPEND : O_WRONLY | O_APPEND, 0, async (file) => {
      await appendOnce(call, file, call.bytes);
      return { result: call.bytes.length };
    }),
  fsync: (call) => opened(call, O_RDONLY, 0, async (file) => file.sync().then(() => OK)),
  truncate: (call) => opened(call, O_WRONLY, 0, async (file) => file.truncate(call.numbers[0]).then(() => OK)),
  chmod: (call) =>
    openedAny(call, async (file) => {
      keepAnchor(call, await file.stat());
      return file.chmod((call.numbers[0] ?? 0) & 0o777).then(() => OK);
    }),
  utime: (call) =>
    openedAny(call, async (file) => file.utimes(call.numbers[0] ?? 0, call.numbers[1] ?? 0).then(() => OK)),
  stat: (call) => at(call, true, async ({ path }) => stated(await lstat(path))),
  lstat: (call) => at(call, false, async ({ path }) => stated(await lstat(path))),
  statfs: (call) =>
    openedAny(call, async (file) => {
      const { type, bsize, blocks, bfree, bavail, files, ffree } = await statfs(`/proc/self/fd/${file.fd}`);
      return { result: 0, bytes: Buffer.from(`${[type, bsize, blocks, bfree, bavail, files, ffree].join(' ')}\n`) };
    }),
  access: (call) => at(call, true, async ({ path }) => allowed(await lstat(path), call.numbers[0] ?? 0)),
  unlink: (call) => at(call, false, async ({ path }) => takeOnce(call, path, () => unlink(path)).then(() => OK)),
  rename: (call) =>
    both(call, (from, to) =>
      takeOnce(call, from, async () => {
        keepAnchor(call, await lstat(from));
        await rename(from, to);
      }),
    ),
  link: (call) => both(call, (from, to) => makeOnce(call, to, () => link(from, to))),
  symlink: async (call) => {
    // A target that goes up could lead out when the link or a directory above it is moved.
    if (call.path.startsWith('/') || call.path.split('/').includes('..')) throw new SystemError('EACCES');
    return at({ ...call, path: call.to }, false, async ({ path }) =>
      makeOnce(call, path, () => symlink(call.path, path)).then(() => OK),
    );
  },
  readlink: (call) =>
    at(call, false, async ({ path }) => {
      const bytes = (await readlink(path, 'buffer')).subarray(0, atMost(call.numbers[0] ?? 0));
      return { result: bytes.length, bytes };
    }),
  mkdir: (call) =>
    at(call, false, async ({ path }) =>
      makeOnce(call, path, () => mkdir(path, { mode: (call.numbers[0] ?? 0) & 0o777 })).then(() => OK),
    ),
  rmdir: (call) =>
    at(call, false, async ({ path }) =>
      takeOnce(call, path, async () => {
        keepAnchor(call, await lstat(path));
        await rmdir(path);
      }).then(() => OK),
    ),
  rmall: (call) =>
    at(call, false, async (place) => takeOnce(call, place.path, () => removeAll(call, place, 0)).then(() => OK)),
  getdir: (call) => listed(call, async (name) => `${name}\n`),
  getlongdir: (call) =>
    listed(call, async (name, path) => {
      const found = await lstat(path).catch(() => undefined);
      return found === undefined ? '' : `${name}\n${statLine(found)}`;
    }),
  chown: (call) => owned(call, true),
  lchown: (call) => owned(call, false),
};

/** Does a request about files; `undefined` if it is about something else. */
export function onFiles(
  { op, words, numbers }: HomeRequest,
  bytes: Uint8Array,
  options: FilesOptions,
): Answer | undefined {
  const [path = '', to = ''] = words;
  return FILE_OPS[op]?.({ ...options, path, to, numbers, bytes });
}

function listed(call: Call, line: (name: string, path: string) => Promise<string>): Answer {
  return at(call, true, async ({ path }) => {
    const directory = await open(path, constants.O_DIRECTORY | SAFE);
    try {
      const inside = `/proc/self/fd/${directory.fd}`;
      const names = (await readdir(inside)).filter((name) => !name.includes('\n')).sort();
      let lines = '';
      for (const name of names) {
        lines += await line(name, `${inside}/${name}`);
        if (lines.length > LONGEST_LIST) throw new SystemError('EFBIG');
      }
      // An empty line ends it.
      const bytes = Buffer.from(`${lines}\n`);
      return { result: bytes.length, bytes };
    } finally {
      await directory.close();
    }
  });
}

function owned(call: Call, follow: boolean): Answer {
  const [uid = -1, gid = -1] = call.numbers;
  return at(call, follow, async ({ path }) => {
    keepAnchor(call, await lstat(path));
    return lchown(path, uid, gid).then(() => OK);
  });
}

async function removeAll(call: Call, { path, name }: Place, depth: number): Promise<void> {
  if (name === '.') throw new SystemError('EINVAL');
  if (!(await lstat(path)).isDirectory()) return unlink(path);
  if (depth > DEEPEST) throw new SystemError('ELOOP');
  const directory = await open(path, constants.O_DIRECTORY | SAFE);
  try {
    const here = await directory.stat();
    keepAnchor(call, here);
    for (const inner of await readdir(`/proc/self/fd/${directory.fd}`)) {
      if (call.bounds.isClosed(here, inner)) throw new SystemError('EACCES');
      await removeAll(call, { path: `/proc/self/fd/${directory.fd}/${inner}`, name: inner }, depth + 1);
    }
  } finally {
    await directory.close();
  }
  await rmdir(path);
}

/** The pieces of a transfer in strides of `stride` bytes, which begin `skip` bytes apart in the file. */
function* strides(
  length: number,
  offset: number,
  stride: number,
  skip: number,
): Generator<readonly [number, number, number]> {
  if (offset < 0 || (length > 0 && stride <= 0) || skip < 0) throw new SystemError('EINVAL');
  if (length > stride * MOST_STRIDES) throw new SystemError('EFBIG');
  for (let from = 0, where = offset; from < length; from += stride, where += skip)
    yield [from, Math.min(length, from + stride), where];
}

function atMost(length: number): number {
  if (length < 0) throw new SystemError('EINVAL');
  return Math.min(length, CHIRP_PIECE);
}

/** Chirp's letters: r, w, a (append), t (truncate), c (create), x (exclusive). */
function flagsOf(letters: string): number {
  const has = (letter: string, flag: number) => (letters.includes(letter) ? flag : 0);
  const way = letters.includes('w') ? (letters.includes('r') ? O_RDWR : O_WRONLY) : O_RDONLY;
  return way | has('c', O_CREAT) | has('t', O_TRUNC) | has('x', O_EXCL) | has('a', O_APPEND);
}

function stated(found: Stats): HomeAnswer {
  return { result: 0, bytes: Buffer.from(statLine(found)) };
}

function statLine(found: Stats): string {
  const { dev, ino, mode, nlink, uid, gid, rdev, size, blksize, blocks, atimeMs, mtimeMs, ctimeMs } = found;
  const times = [atimeMs, mtimeMs, ctimeMs].map((ms) => Math.floor(ms / 1000));
  return `${[dev, ino, mode, nlink, uid, gid, rdev, size, blksize, blocks, ...times].join(' ')}\n`;
}
