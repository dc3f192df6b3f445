import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { shellHalf } from './recorded.ts';

const SRC = join(import.meta.dirname, '../../src/backends');

describe('what a batch system is handed', () => {
  it('passes shellcheck', () => {
    const files = ['sge-job.sh', 'job-script.sh', 'pbs-family.sh'].map((name) => join(SRC, name));
    // The variables and functions of jobmanager.sh are checked in its own test.
    const found = spawnSync('shellcheck', ['-s', 'sh', '-e', 'SC2034,SC2154,SC1090', ...files], { encoding: 'utf8' });
    expect(found.stdout).toBe('');
  });

  it('a job script keeps every character of the directories', () => {
    const dir = mkdtempSync(join(tmpdir(), 'gjs-'));
    try {
      const odd = join(dir, `it's "odd" $(id) \\ \`x\` é`);
      mkdirSync(join(odd, 'jobs/k'), { recursive: true });
      writeFileSync(join(odd, 'wrapper.sh'), 'printf "%s\\n" "$@"\n');
      const script = `say() { printf '%s\\n' "$*"; }; . "$1"; BIN=$2 ROOT=$2; job_script k 2 '\${ID:--}' '#'; sh "$SCRIPT"`;
      const args = ['-c', script, 'sh', join(SRC, 'job-script.sh'), odd];
      const said = execFileSync('sh', args, { encoding: 'utf8', env: { ...process.env, ID: '7.x' } });
      expect(said).toBe(`${odd}\nk\n2\n\n7.x\n`);
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  });

  it('an argument for HTCondor keeps every character', () => {
    expect(shellHalf('condor', {}, `argument 'a "b" '\\''c'\\'' $d'`)).toEqual([`'a ""b"" ''c'' $(DOLLAR)d'`]);
  });

  it.each([
    [0, 0],
    [3, 3],
    [99, 1],
    [100, 1],
    [127, 127],
    [137, 1],
    [255, 1],
  ])('Grid Engine is not told a status with a meaning of its own: %i', (status, told) => {
    const dir = mkdtempSync(join(tmpdir(), 'gjs-'));
    try {
      writeFileSync(join(dir, 'wrapper.sh'), `exit ${status}\n`);
      const ran = spawnSync('sh', [join(SRC, 'sge-job.sh'), join(dir, 'wrapper.sh'), dir, 'k', '1']);
      expect(ran.status).toBe(told);
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  });
});
