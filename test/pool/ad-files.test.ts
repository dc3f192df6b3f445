import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { JobAdText, writeAds } from '../../src/pool/worker/ad-files.ts';

const KIND = { Cmd: '"/bin/a"', Args: '"1"', ProcId: '0', GryphusKey: '"k"', JobStatus: '1', Iwd: '"/x"' };
const size = { cpus: 1, memoryMb: 1, diskKb: 1, gpus: 0 };

it.each([
  ['as its kind', {}, ['Args = "1"', 'Cmd = "/bin/a"', 'Iwd = "/x"', 'JobStatus = 2', 'ProcId = 0']],
  [
    'with other values, in other spelling',
    { args: '"a\nb"', ProcId: '1', JobStatus: '5', gryphuskey: null },
    ['args = "a\\nb"', 'Cmd = "/bin/a"', 'Iwd = "/x"', 'JobStatus = 2', 'ProcId = 1'],
  ],
  [
    'with one more, one less, and one that is not for jobs',
    { Err: '"e"', Iwd: null, Env: '"X=1"' },
    ['Args = "1"', 'Cmd = "/bin/a"', 'Err = "e"', 'JobStatus = 2', 'ProcId = 0'],
  ],
])("a job's ad is written %s", (_, ad, lines) => {
  const dir = mkdtempSync(join(tmpdir(), 'gryphus ads '));
  const start = { t: 'start', key: 'a.1.0.1', claim: 'c', kind: 'k', size, lease: 60, ad } as const;
  const spec = {
    executable: { kind: 'there', path: '/bin/a' },
    args: [],
    env: {},
    inputs: [],
    joinStderr: false,
  } as const;
  writeAds(dir, { ...start, spec }, new JobAdText(KIND), {});
  expect(readFileSync(join(dir, '.job.ad'), 'utf8')).toBe(`${lines.join('\n')}\n`);
  rmSync(dir, { recursive: true });
});
