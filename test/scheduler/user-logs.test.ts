import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Kv } from '../../src/queue/api.ts';
import { UserLogs } from '../../src/scheduler/user-logs.ts';
import { startRedis, type TestRedis, until } from '../sites/redis.ts';

const mounted =
  spawnSync('sh', ['-c', 'd=$(mktemp -d) && mount -t tmpfs none "$d" && umount "$d" && rmdir "$d"']).status === 0;

describe.runIf(mounted)('a user log on a full disk', () => {
  const dir = mkdtempSync('/tmp/gq-');
  const path = join(dir, 'log');
  let redis: TestRedis;
  let kv: Kv;
  let told: string[] = [];
  beforeAll(async () => {
    redis = await startRedis();
    kv = (await redis.open()).kv;
    spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'none', dir]);
  });
  afterAll(async () => {
    await redis.stop();
    spawnSync('umount', [dir]);
    rmSync(dir, { recursive: true, force: true });
  });
  beforeEach(async () => {
    rmSync(path, { force: true });
    rmSync(join(dir, 'fat'), { force: true });
    for (const key of ['intent', 'owed']) await kv.delete('user-log', key);
    told = [];
  });

  const open = () => new UserLogs(kv, (at, error) => told.push(`${at}: ${error.message}`));
  const batch = (first: string, text: string) => ({ first, texts: new Map([[path, text]]) });
  const fill = () => {
    try {
      writeFileSync(join(dir, 'fat'), Buffer.alloc(100_000));
    } catch {
      // That was the purpose.
    }
  };
  const line = (name: string) => `${name.repeat(3000)}\n`;

  it('is owed what found no room, and has it in order once there is some', async () => {
    const logs = open();
    await logs.append(batch('1', line('a')));
    fill();
    await logs.append(batch('2', line('b')));
    await logs.append(batch('3', line('c')));
    expect(readFileSync(path, 'utf8')).toBe(line('a'));
    expect(told).toEqual([expect.stringContaining('ENOSPC')]);
    rmSync(join(dir, 'fat'));
    await logs.append(batch('4', line('d')));
    expect(readFileSync(path, 'utf8')).toBe(['a', 'b', 'c', 'd'].map(line).join(''));
    await logs.append(batch('5', line('e')));
    expect(readFileSync(path, 'utf8')).toBe(['a', 'b', 'c', 'd', 'e'].map(line).join(''));
  });

  it('has it also where nothing more happens', async () => {
    const logs = open();
    await logs.append(batch('1', line('a')));
    fill();
    await logs.append(batch('2', line('b')));
    rmSync(join(dir, 'fat'));
    await until(() => readFileSync(path, 'utf8') === ['a', 'b'].map(line).join(''), 30_000);
    await open().append(batch('3', line('c')));
    expect(readFileSync(path, 'utf8')).toBe(['a', 'b', 'c'].map(line).join(''));
  });

  it('has it once, also after a crash of whoever owed it', async () => {
    const first = open();
    await first.append(batch('1', line('a')));
    fill();
    await first.append(batch('2', line('b')));
    await first.append(batch('3', line('c')));
    rmSync(join(dir, 'fat'));
    // The last batch was not passed over yet when the first one died.
    const second = open();
    await second.append(batch('3', line('c')));
    await second.append(batch('4', line('d')));
    expect(readFileSync(path, 'utf8')).toBe(['a', 'b', 'c', 'd'].map(line).join(''));
  });
});
