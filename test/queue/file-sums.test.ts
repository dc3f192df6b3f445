import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { oneByteChanges } from '../../src/queue/one-byte.ts';
import { checkServerFiles } from '../../src/queue/redis-check.ts';
import { FileCover } from '../../src/queue/redis-cover.ts';
import { readSums, SEGMENT, sumsFile, sumsText } from '../../src/queue/redis-sums.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'gryphus-'));
  mkdirSync(join(dir, 'appendonlydir'));
});
afterEach(() => rmSync(dir, { recursive: true }));

const pathOf = (name: string) => join(dir, 'appendonlydir', name);
const BASE = 'appendonly.aof.1.base.rdb';
const INCR = 'appendonly.aof.1.incr.aof';
const incr = () => pathOf(INCR);

function manifest(n = 1): void {
  const lines = [`appendonly.aof.${n}.base.rdb seq ${n} type b`, `appendonly.aof.${n}.incr.aof seq ${n} type i`];
  writeFileSync(pathOf('appendonly.aof.manifest'), lines.map((line) => `file ${line}\n`).join(''));
}

/** Bytes that say of each place which it is. */
function content(length: number, seed = 1): Buffer {
  const bytes = Buffer.alloc(length);
  let state = seed >>> 0 || 1;
  for (let i = 0; i < length; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    bytes[i] = state >>> 24;
  }
  return bytes;
}

function change(file: string, at: number, bits: number): void {
  const bytes = readFileSync(file);
  bytes[at] = (bytes[at] ?? 0) ^ bits;
  writeFileSync(file, bytes);
}

const summed = async (cover = new FileCover(dir), run = 'a') => cover.look(async () => run);

it('finds each change of one byte from the sums of before and after', () => {
  const bits = fc.integer({ min: 1, max: 255 });
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 5000 }), fc.nat(), bits, (bytes, where, mask) => {
      const at = where % bytes.length;
      const wrong = Uint8Array.from(bytes);
      wrong[at] = (wrong[at] ?? 0) ^ mask;
      expect([...oneByteChanges(bytes.length, crc32(bytes) ^ crc32(wrong))]).toContainEqual({ at, bits: mask });
    }),
  );
});

describe("the sums of Redis' files", () => {
  const base = content(SEGMENT + 77, 5);
  const grown = content(2 * SEGMENT + 1234, 7);
  beforeEach(async () => {
    manifest();
    writeFileSync(pathOf(BASE), base);
    writeFileSync(incr(), grown);
    await summed();
  });

  it('put back any byte that has changed, and say which', () => {
    const place = fc.oneof(
      fc.record({ name: fc.constant(BASE), at: fc.nat(base.length - 1) }),
      fc.record({ name: fc.constant(INCR), at: fc.nat(grown.length - 1) }),
    );
    fc.assert(
      fc.property(place, fc.integer({ min: 1, max: 255 }), ({ name, at }, bits) => {
        const right = name === BASE ? base : grown;
        change(pathOf(name), at, bits);
        const is = right[at] ?? 0;
        expect(checkServerFiles(dir)).toEqual([{ file: pathOf(name), byte: at, was: is ^ bits, is }]);
        expect(readFileSync(pathOf(name)).equals(right)).toBe(true);
        expect(checkServerFiles(dir)).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });

  it('put back any byte of the manifest, also one that changed while Redis ran, and leave what Redis wrote there', async () => {
    const file = pathOf('appendonly.aof.manifest');
    const right = readFileSync(file);
    const cover = new FileCover(dir);
    for (let at = 0; at < right.length; at++) {
      change(file, at, 1 << (at % 8));
      if (at % 3 === 0) {
        appendFileSync(incr(), content(50, at + 1));
        await summed(cover);
      }
      const is = right[at];
      expect(checkServerFiles(dir)).toEqual([{ file, byte: at, was: (is ?? 0) ^ (1 << (at % 8)), is }]);
      expect(readFileSync(file).equals(right)).toBe(true);
      if (at % 7 === 0) await summed(cover, String(at));
    }
    // With more of it damaged, Redis says so; what a rewrite put there is left as it is.
    manifest(2);
    writeFileSync(pathOf('appendonly.aof.2.base.rdb'), base);
    writeFileSync(pathOf('appendonly.aof.2.incr.aof'), grown);
    const rewritten = readFileSync(file);
    expect(checkServerFiles(dir)).toEqual([]);
    await summed();
    change(file, 0, 2);
    expect(checkServerFiles(dir)).toHaveLength(1);
    expect(readFileSync(file).equals(rewritten)).toBe(true);
  });

  it('put back one byte in each of several segments', () => {
    change(incr(), 3, 1);
    change(incr(), SEGMENT, 0x80);
    change(pathOf(BASE), 9, 255);
    expect(checkServerFiles(dir)).toHaveLength(3);
    expect(readFileSync(incr()).equals(grown)).toBe(true);
    expect(readFileSync(pathOf(BASE)).equals(base)).toBe(true);
  });

  it('refuse two changed bytes of one segment, with the place and what to do, and change nothing', () => {
    const two = fc.uniqueArray(fc.nat(SEGMENT - 1), { minLength: 2, maxLength: 2 });
    fc.assert(
      fc.property(two, fc.integer({ min: 1, max: 255 }), ([one = 0, other = 1], bits) => {
        change(incr(), one, bits);
        change(incr(), other, bits);
        // In the other file: not put back as long as anything is refused.
        change(pathOf(BASE), 1, 1);
        const before = readFileSync(incr());
        expect(() => checkServerFiles(dir)).toThrow(`${incr()} is damaged between bytes 0 and ${SEGMENT}`);
        expect(readFileSync(incr()).equals(before)).toBe(true);
        expect(readFileSync(pathOf(BASE)).equals(base)).toBe(false);
        writeFileSync(incr(), grown);
        writeFileSync(pathOf(BASE), base);
      }),
      { numRuns: 50 },
    );
  });

  it('refuse a hole', () => {
    const bytes = readFileSync(incr());
    writeFileSync(incr(), bytes.fill(0, SEGMENT + 100, SEGMENT + 612));
    expect(() => checkServerFiles(dir)).toThrow(`between bytes ${SEGMENT} and ${2 * SEGMENT}`);
  });

  it('that are missing or torn give no alarm, and are made again', async () => {
    const whole = readFileSync(sumsFile(dir));
    for (let size = whole.length; size >= 0; size -= 29) {
      writeFileSync(sumsFile(dir), whole.subarray(0, size));
      expect(checkServerFiles(dir)).toEqual([]);
      writeFileSync(sumsFile(dir), whole.subarray(0, size));
      await summed();
      change(incr(), 2 * SEGMENT + 5, 4);
      expect(checkServerFiles(dir)).toHaveLength(1);
    }
    rmSync(sumsFile(dir));
    change(incr(), 5, 4);
    expect(checkServerFiles(dir)).toEqual([]);
  });

  it('that have changed themselves give no alarm', () => {
    const whole = readFileSync(sumsFile(dir));
    fc.assert(
      fc.property(fc.nat(whole.length - 1), fc.integer({ min: 1, max: 255 }), (at, bits) => {
        writeFileSync(sumsFile(dir), whole);
        change(sumsFile(dir), at, bits);
        expect(checkServerFiles(dir)).toEqual([]);
      }),
    );
  });

  it('know what was added since, and what a rewrite has put in the place of the files', async () => {
    appendFileSync(incr(), content(SEGMENT, 9));
    const cover = new FileCover(dir);
    await summed(cover);
    change(incr(), grown.length + 10, 2);
    expect(checkServerFiles(dir)).toHaveLength(1);
    manifest(2);
    for (const name of [BASE, INCR]) rmSync(pathOf(name));
    writeFileSync(pathOf('appendonly.aof.2.base.rdb'), content(500, 3));
    writeFileSync(pathOf('appendonly.aof.2.incr.aof'), content(800, 4));
    expect(checkServerFiles(dir)).toEqual([]);
    await summed(cover);
    change(pathOf('appendonly.aof.2.base.rdb'), 499, 1);
    change(pathOf('appendonly.aof.2.incr.aof'), 0, 1);
    expect(checkServerFiles(dir)).toHaveLength(2);
  });

  it('say nothing of another file that somebody put in the place of one, and know a copy', async () => {
    // Its inode stays in use.
    renameSync(incr(), join(dir, 'kept'));
    cpSync(join(dir, 'kept'), incr());
    change(incr(), 7, 1);
    expect(checkServerFiles(dir)).toHaveLength(1);
    await summed();
    writeFileSync(incr(), content(3 * SEGMENT, 99));
    expect(checkServerFiles(dir)).toEqual([]);
  });

  describe('when Redis has dropped the end of its file at a start, and written on,', () => {
    const cut = async () => {
      const cover = new FileCover(dir);
      await summed(cover, 'a');
      truncateSync(incr(), 2 * SEGMENT + 800);
      expect(checkServerFiles(dir)).toEqual([]);
      // It does not read so far as to the end of this file.
      truncateSync(incr(), SEGMENT + 500);
      appendFileSync(incr(), content(2 * SEGMENT, 21));
      return cover;
    };

    it('give no alarm if it is killed before anybody has looked', async () => {
      await cut();
      expect(checkServerFiles(dir)).toEqual([]);
    });

    it.each(['look', 'rest'] as const)('know the new end after a %s', async (how) => {
      const cover = await cut();
      if (how === 'look') await summed(cover, 'b');
      else await cover.rest(() => false);
      change(incr(), SEGMENT + 600, 1);
      change(incr(), 3 * SEGMENT + 1, 1);
      expect(checkServerFiles(dir)).toHaveLength(2);
      expect(checkServerFiles(dir)).toEqual([]);
    });
  });

  it('do not take a change in their last, short segment for what was written', async () => {
    const cover = new FileCover(dir);
    await summed(cover);
    change(incr(), 2 * SEGMENT + 9, 1);
    appendFileSync(incr(), content(100, 21));
    await summed(cover);
    expect(checkServerFiles(dir)).toMatchObject([{ byte: 2 * SEGMENT + 9 }]);
  });

  it('refuse a change of one byte that agrees with the one sum and not with the other', () => {
    const sums = readSums(dir);
    sums?.files
      .get(INCR)
      ?.segments.splice(0, 1, { to: SEGMENT, crc: crc32(grown.subarray(0, SEGMENT)), hash: 'other' });
    if (sums) writeFileSync(sumsFile(dir), sumsText(sums));
    change(incr(), 1, 1);
    expect(() => checkServerFiles(dir)).toThrow('is damaged between bytes 0 and');
  });

  it('are not noted while Redis gives way to another one', async () => {
    appendFileSync(incr(), content(100, 2));
    const before = statSync(sumsFile(dir)).size;
    let asked = 0;
    await new FileCover(dir).look(async () => `run${asked++}`);
    expect(statSync(sumsFile(dir)).size).toBe(before);
  });

  it('stay small in a year without a job', async () => {
    const cover = new FileCover(dir);
    for (let look = 0; look < 5000; look++) {
      appendFileSync(incr(), 'x');
      await summed(cover);
    }
    expect(statSync(sumsFile(dir)).size).toBeLessThan(400_000);
    change(incr(), 2 * SEGMENT + 2000, 1);
    expect(checkServerFiles(dir)).toHaveLength(1);
  });
});

/** A Redis that is started, killed, copied and rewritten, as far as its files are concerned. */
class Model {
  run = 0;
  up = false;
  seq = 1;
  /** Ends of whole commands in the growing file. */
  ends: number[] = [0];
  seed = 11;
  cover = new FileCover(dir);

  get file(): string {
    return pathOf(`appendonly.aof.${this.seq}.incr.aof`);
  }

  get size(): number {
    return statSync(this.file).size;
  }

  begin(): void {
    manifest(this.seq);
    writeFileSync(pathOf(`appendonly.aof.${this.seq}.base.rdb`), content(this.seq * 1000, this.seed++));
    writeFileSync(this.file, '');
    this.ends = [0];
  }

  write(length: number): void {
    appendFileSync(this.file, content(length, this.seed++));
    this.ends.push(this.size);
  }

  /** It drops commands that are not whole. */
  start(): void {
    this.ends = this.ends.filter((end) => end <= this.size);
    truncateSync(this.file, this.ends.at(-1) ?? 0);
    this.run += 1;
    this.up = true;
  }
}

const STEP = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('write'), n: fc.integer({ min: 1, max: 90_000 }) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('look'), n: fc.constant(0) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('start'), n: fc.constant(0) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('stop'), n: fc.constant(0) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('kill'), n: fc.integer({ min: 0, max: 90_000 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('rewrite'), n: fc.constant(0) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('older copy'), n: fc.nat(200_000) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('torn sums'), n: fc.nat(2000) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('another scheduler'), n: fc.constant(0) }) },
);

it('never give an alarm without damage, and put back a byte after any history', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(STEP, { minLength: 5, maxLength: 30, size: 'max' }), fc.nat(), async (steps, where) => {
      rmSync(dir, { recursive: true });
      mkdirSync(join(dir, 'appendonlydir'), { recursive: true });
      const redis = new Model();
      redis.begin();
      const start = () => {
        expect(checkServerFiles(dir)).toEqual([]);
        redis.start();
      };
      const stop = async () => {
        redis.up = false;
        await redis.cover.rest(() => false);
      };
      for (const { do: what, n } of steps) {
        if (what === 'torn sums' && statSync(sumsFile(dir), { throwIfNoEntry: false }))
          truncateSync(sumsFile(dir), Math.max(0, statSync(sumsFile(dir)).size - n));
        else if (what === 'another scheduler') redis.cover = new FileCover(dir);
        else if (what === 'older copy') {
          // Of this directory, in its place.
          truncateSync(redis.file, Math.max(0, redis.size - n));
          start();
        } else if (!redis.up) {
          if (what === 'start') start();
        } else if (what === 'write') redis.write(n);
        else if (what === 'look') await redis.cover.look(async () => `run${redis.run}`);
        else if (what === 'stop') await stop();
        else if (what === 'kill') {
          redis.up = false;
          if (n > 0) appendFileSync(redis.file, content(n, redis.seed++));
          // With `down`, which finds Redis hanging.
          if (n % 3 === 0) await redis.cover.rest(() => false);
        } else if (what === 'rewrite') {
          redis.seq += 1;
          redis.begin();
        }
      }
      if (!redis.up) start();
      redis.write(300);
      await redis.cover.look(async () => `run${redis.run}`);
      await stop();
      const right = readFileSync(redis.file);
      const at = where % right.length;
      change(redis.file, at, 0x10);
      expect(checkServerFiles(dir)).toHaveLength(1);
      expect(readFileSync(redis.file).equals(right)).toBe(true);
    }),
    { numRuns: 150 },
  );
}, 60_000);
