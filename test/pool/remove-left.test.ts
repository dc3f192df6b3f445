import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
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
