import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { appendOnce, sizeOf } from '../../../src/scheduler/user-logs/append-once.ts';
import { LogJournal } from '../../../src/scheduler/user-logs/journal.ts';
import { parseMounts, placeOf } from '../../../src/scheduler/user-logs/places.ts';
import { UserLogs } from '../../../src/scheduler/user-logs/user-logs.ts';
import { WriterProcess } from '../../../src/scheduler/user-logs/writer.ts';
import { canHang, type HungMount, hungMount, removeHung } from '../../sites/hung-mount.ts';
import { until } from '../../sites/redis.ts';

const DIST = join(import.meta.dirname, '../../..', process.env['GRYPHUS_DIST'] ?? 'dist');
const LIMIT_MS = 2000;

let dir: string;
let told: string[] = [];
let pids: number[] = [];
let opened: UserLogs[] = [];
let journal: LogJournal;
let batches = 0;
beforeEach(() => {
  dir = mkdtempSync('/tmp/gq-');
  told = [];
  pids = [];
});
afterEach(async () => {
  for (const logs of opened.splice(0)) await logs.close();
  rmSync(dir, { recursive: true, force: true });
});

async function open(keepForMs = 1e9): Promise<UserLogs> {
  journal = await LogJournal.open(join(dir, 'journal'));
  const logs = new UserLogs({
    journal,
    writer: new WriterProcess({
      program: join(DIST, 'scheduler/user-logs/writer-main.js'),
      limitMs: LIMIT_MS,
      onStart: (pid) => pids.push(pid),
    }),
    keepForMs: () => keepForMs,
    onTrouble: (path, error) => told.push(`${path}: ${error}`),
    onOwed: () => undefined,
  });
  opened.push(logs);
  return logs;
}

async function end(logs: UserLogs): Promise<void> {
  opened = opened.filter((one) => one !== logs);
  await logs.close();
}

function batch(texts: Record<string, string>): Parameters<UserLogs['append']>[0] {
  batches += 1;
  return { from: `${batches}-0`, last: `${batches}-5`, texts: new Map(Object.entries(texts)) };
}

const content = (path: string) => readFileSync(path, 'utf8');
/** Everything is written, or discarded. */
const settled = () => until(() => journal.isEmpty, 40_000);

describe('user logs', () => {
  it('of one batch are written together', async () => {
    const logs = await open();
    const [a, b] = [join(dir, 'a'), join(dir, 'b c\nd')];
    await logs.append(batch({ [a]: '1\n', [b]: '2\n' }));
    await logs.append(batch({ [a]: '3\n' }));
    await settled();
    expect([content(a), content(b), logs.owed().count]).toEqual(['1\n3\n', '2\n', 0]);
  });

  it('are written after their journal had no space', async () => {
    const logs = await open();
    const log = join(dir, 'log');
    vi.spyOn(journal, 'accept').mockRejectedValueOnce(new Error('ENOSPC: no space left on device'));
    const first = batch({ [log]: '1\n' });
    await expect(logs.append(first)).rejects.toThrow('ENOSPC');
    await logs.append(first);
    await settled();
    expect(content(log)).toBe('1\n');
  });

  it('that cannot be written do not hold up others, and have all in order as soon as they can', async () => {
    const logs = await open();
    const paths = {
      fifo: join(dir, 'fifo'),
      missing: join(dir, 'later/log'),
      well: join(dir, 'well'),
    };
    execFileSync('mkfifo', [paths.fifo]);
    for (const name of ['a', 'b', 'c'])
      await logs.append(batch(Object.fromEntries(Object.values(paths).map((path) => [path, `${name}\n`]))));
    await until(() => existsSync(paths.well) && content(paths.well) === 'a\nb\nc\n' && logs.owed().count === 2);
    expect(logs.owed()).toMatchObject({
      count: 2,
      logs: [
        { path: paths.fifo, error: `${paths.fifo} is not a regular file` },
        { path: paths.missing, error: expect.stringContaining('ENOENT') },
      ],
    });
    expect(told).toHaveLength(2);
    rmSync(paths.fifo);
    mkdirSync(join(dir, 'later'));
    await settled();
    await logs.append(batch({ [paths.fifo]: 'd\n', [paths.missing]: 'd\n' }));
    await settled();
    expect([content(paths.fifo), content(paths.missing)]).toEqual(['a\nb\nc\nd\n', 'a\nb\nc\nd\n']);
  });

  it('are owed the same after a crash', async () => {
    const path = join(dir, 'later/log');
    const first = await open();
    await first.append(batch({ [path]: 'a\n' }));
    await first.append(batch({ [path]: 'b\n', [join(dir, 'well')]: 'b\n' }));
    await end(first);
    const second = await open();
    await second.append(batch({ [path]: 'c\n' }));
    await until(() => second.owed().logs[0]?.path === path);
    mkdirSync(join(dir, 'later'));
    await settled();
    expect([content(path), content(join(dir, 'well'))]).toEqual(['a\nb\nc\n', 'b\n']);
  });

  it('have each batch once, wherever its writing was cut off', async () => {
    const path = join(dir, 'log');
    let expected = '';
    for (let n = 0; n < 15; n++) {
      pids = [];
      const logs = await open();
      const one = batch({ [path]: `event ${n}\n`.repeat(20_000) });
      expected += `event ${n}\n`.repeat(20_000);
      const appended = logs.append(one).catch(() => undefined);
      // From before the journal has it until all is done.
      await new Promise((resume) => setTimeout(resume, n * 12));
      if (n % 2 === 0) await end(logs);
      else for (const pid of pids.splice(-1)) process.kill(pid, 'SIGKILL');
      await appended;
      // The batch is delivered again unless it was accepted.
      const after = n % 2 === 0 ? await open() : logs;
      if (after.accepted(one.from) === undefined) await after.append(one);
      else expect(after.accepted(one.from)).toBe(one.last);
      await settled();
      expect(content(path) === expected).toBe(true);
      await end(after);
    }
  }, 60_000);

  it('are written by one call at a time, even if new text comes while the record that earlier text is done is made', async () => {
    const real = await LogJournal.open(join(dir, 'journal'));
    journal = new Proxy(real, {
      get(target, name) {
        if (name === 'done')
          return async (written: ReadonlyMap<string, number>) => {
            await target.done(written);
            await sleep(20);
          };
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    const writing = new Set<string>();
    let calls = 0;
    let overlaps = 0;
    const logs = new UserLogs({
      journal,
      writer: {
        size: sizeOf,
        async append(piece) {
          if (writing.has(piece.path)) overlaps += 1;
          writing.add(piece.path);
          try {
            if (++calls === 1) throw new Error('not now');
            await sleep(10);
            await appendOnce(piece);
          } finally {
            writing.delete(piece.path);
          }
        },
        close: () => undefined,
      },
      keepForMs: () => 1e9,
      onTrouble: () => undefined,
      onOwed: () => undefined,
    });
    opened.push(logs);
    const path = join(dir, 'log');
    let all = '';
    // The text that failed is retried meanwhile.
    for (let i = 0; i < 60; i++) {
      await logs.append(batch({ [path]: `${i}\n` }));
      all += `${i}\n`;
    }
    await settled();
    expect({ overlaps, text: content(path) }).toEqual({ overlaps: 0, text: all });
  });

  it('forget what they were owed for too long', async () => {
    const logs = await open(100);
    await logs.append(batch({ [join(dir, 'never/log')]: 'a\n' }));
    await settled();
    expect(told.at(-1)).toMatch(/could not be written for longer than/);
  });
});

const mounts =
  process.getuid?.() === 0 &&
  spawnSync('sh', ['-c', 'd=$(mktemp -d) && mount -t tmpfs none "$d" && umount "$d" && rmdir "$d"']).status === 0;

describe.runIf(mounts)('a user log on a full disk', () => {
  let disk: string;
  beforeAll(() => {
    disk = mkdtempSync('/tmp/gq-disk-');
    spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'none', disk]);
  });
  afterAll(() => {
    spawnSync('umount', [disk]);
    rmSync(disk, { recursive: true, force: true });
  });

  it('is owed what did not fit, whole, and has it in order once there is space', async () => {
    const path = join(disk, 'log');
    const fat = join(disk, 'fat');
    const line = (name: string) => `${name.repeat(3000)}\n`;
    const first = await open();
    await first.append(batch({ [path]: line('a') }));
    await settled();
    try {
      writeFileSync(fat, Buffer.alloc(100_000));
    } catch {
      // This was the purpose.
    }
    await first.append(batch({ [path]: line('b') }));
    await first.append(batch({ [path]: line('c') }));
    await until(() => told.length > 0);
    expect(content(path)).toBe(line('a'));
    expect(told).toEqual([expect.stringContaining('ENOSPC')]);
    await end(first);
    rmSync(fat);
    const second = await open();
    await second.append(batch({ [path]: line('d') }));
    await settled();
    expect(content(path)).toBe(['a', 'b', 'c', 'd'].map(line).join(''));
  });
});

describe.runIf(canHang)('a file system that does not answer', () => {
  let hung: HungMount;
  beforeAll(async () => {
    hung = await hungMount();
  });
  afterAll(() => removeHung(hung));

  it('holds up its own logs alone, and for one time limit', async () => {
    const logs = await open();
    const there = Array.from({ length: 40 }, (_, i) => join(hung.dir, `d${i}/log`));
    const here = Array.from({ length: 40 }, (_, i) => join(dir, `log${i}`));
    const all = (text: string) => batch(Object.fromEntries([...there, ...here].map((path) => [path, text])));
    const began = performance.now();
    await logs.append(all('a\n'));
    // Logs that had not been started when the first were found to hang are not tried one by one.
    expect(performance.now() - began).toBeLessThan(6000);
    for (const text of ['b\n', 'c\n']) {
      const again = performance.now();
      await logs.append(all(text));
      expect(performance.now() - again).toBeLessThan(2000);
    }
    await until(() => here.every((path) => existsSync(path) && content(path) === 'a\nb\nc\n'), 20_000);
    await until(() => logs.owed().count === 40, 20_000);
    expect(logs.owed().logs[0]?.error).toContain('does not answer');
    // Ending waits for nothing.
    await end(logs);
    hung.remedy();
    await open();
    for (let i = 0; i < 40; i++) mkdirSync(join(hung.dir, `d${i}`));
    await settled();
    expect(there.every((path) => content(path) === 'a\nb\nc\n')).toBe(true);
  }, 60_000);
});

describe('what hangs together', () => {
  const mountinfo = [
    '22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw',
    '30 22 0:40 / /home rw,relatime shared:5 - nfs4 server:/home rw,vers=4.2',
    '31 22 0:41 / /my\\040data rw - fuse.sshfs me@there: rw',
    '32 30 0:42 / /home/jane/tmp rw - tmpfs tmpfs rw',
  ].join('\n');

  it.each([
    ['/home/jane/run/log', '/home'],
    ['/homes/log', '/homes'],
    ['/home/jane/tmp/a/log', '/home/jane/tmp/a'],
    ['/my data/x/y', '/my data'],
    ['/var/x/log', '/var/x'],
  ])('is, for %j, %j', (path, place) => {
    expect(placeOf(path, parseMounts(mountinfo))).toBe(place);
  });
});
