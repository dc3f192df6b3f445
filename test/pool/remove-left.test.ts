import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { removeLeft } from '../../src/pool/worker/remove-left.ts';

it('a directory is removed whatever a job has left in it', () => {
  const dir = join(mkdtempSync(join(tmpdir(), 'left-')), "a job's");
  mkdirSync(join(dir, 'shut/in'), { recursive: true });
  writeFileSync(join(dir, 'shut/in/file'), '');
  const nest =
    'chdir $ARGV[0]; for (1..800) { mkdir "nested"; chdir "nested" or die $! } chdir ".."; chmod 0, "nested"';
  expect(spawnSync('perl', ['-e', `${nest}; chdir $ARGV[0]; chmod 0, "shut/in", "shut"`, dir]).status).toBe(0);
  expect(() => rmSync(dir, { recursive: true })).toThrow(/ENAMETOOLONG|EACCES/);
  removeLeft(dir);
  expect(existsSync(dir)).toBe(false);
  rmSync(join(dir, '..'), { recursive: true });
});

it('nothing is removed behind a link that somebody puts in the place of a directory meanwhile', async () => {
  const top = mkdtempSync(join(tmpdir(), 'swapped-'));
  const [dir, others] = [join(top, 'job'), join(top, 'others')];
  const names = Array.from({ length: 2000 }, (_, n) => `f${n}`);
  mkdirSync(join(dir, 'work/in'), { recursive: true });
  mkdirSync(others);
  for (const name of names) for (const at of [join(dir, 'work/in'), others]) writeFileSync(join(at, name), '');
  // It waits until the first files are gone.
  const swap = `$| = 1; chdir $ARGV[0]; print "ready\\n";
    while (1) { opendir my $d, "in"; last if grep({ /^f/ } readdir $d) < ${names.length} }
    rename "in", "moved"; symlink $ARGV[1], "in"`;
  const swapper = spawn('perl', ['-e', swap, join(dir, 'work'), others], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(swapper.stdout, 'data');
  const over = once(swapper, 'close');
  removeLeft(dir, true);
  await over;
  expect(readdirSync(others)).toHaveLength(names.length);
  rmSync(top, { recursive: true });
});
