import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent, until } from '../agent/agent.ts';
import { type Grid, startGrid } from '../gram/kit.ts';
import { nothingLeft } from '../gram/left.ts';
import { missingPrograms } from '../sites/gatekeeper.ts';
import { some } from '../slow.ts';
import { HERE } from './points.ts';

const SKIP = missingPrograms().length > 0;
const JOBS = 2;
/** An ordinary run covers every n-th point: each costs several exchanges with a real gatekeeper. */
const EVERY = 8;
let grid: Grid;
let agent: TestAgent;
let crashFile: string;

beforeAll(async () => {
  if (SKIP) return;
  grid = await startGrid();
  agent = new TestAgent({ X509_CERT_DIR: grid.ca.trust, X509_USER_PROXY: grid.proxyFile });
  crashFile = join(agent.dir, 'crash-point');
  agent.env['GRYPHUS_CRASH_FILE'] = crashFile;
  agent.config('[gridmanager]\nrestart_max = "100ms"\nretry_max = "1s"\n');
  await agent.ok('up');
}, 120_000);
afterAll(async () => {
  await agent?.end();
  await grid?.stop();
}, 120_000);

/** Jobs that write a line to a ledger when they start. */
async function submit(seconds: number): Promise<{ cluster: number; ledger: string }> {
  const ledger = join(agent.work, `ledger-${Math.random().toString(36).slice(2)}`);
  agent.file('job.sh', `#!/bin/sh\necho "$1" >>"$2"\necho "out $1"\nsleep ${seconds}\necho "file $1" >"r$1"\n`, 0o755);
  const cluster = await agent.submit(
    [
      'universe = grid',
      `grid_resource = gt2 ${grid.gate.address}/jobmanager-fork`,
      'executable = job.sh',
      `arguments = $(Process) ${ledger}`,
      'output = o$(Process)',
      'transfer_output_files = r$(Process)',
      `queue ${JOBS}`,
    ].join('\n'),
  );
  return { cluster, ledger };
}

const lines = (file: string): string[] =>
  existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];
async function finish({ cluster, ledger }: { cluster: number; ledger: string }): Promise<void> {
  await agent.ok('wait', '--no-outcome', '--timeout', '200', String(cluster));
  expect(lines(ledger).sort()).toEqual(['0', '1']);
  for (let proc = 0; proc < JOBS; proc++) {
    for (const [name, text] of [
      [`o${proc}`, `out ${proc}\n`],
      [`r${proc}`, `file ${proc}\n`],
    ] as const) {
      expect(agent.read(name)).toBe(text);
      rmSync(join(agent.work, name));
    }
  }
  await nothingLeft(grid, agent);
}

const points = (of: 'run' | 'remove') =>
  some(
    Object.entries(HERE)
      .filter(([, how]) => how === of)
      .map(([point]) => point),
    EVERY,
  );

describe.skipIf(SKIP)('every job once at a GRAM service, whatever crashes', () => {
  it.each(points('run'))(
    'the GridManager dies at %s',
    async (point) => {
      writeFileSync(crashFile, point);
      const jobs = await submit(0);
      await until(`a crash at ${point}`, () => !existsSync(crashFile) || undefined, 120_000);
      await finish(jobs);
    },
    400_000,
  );

  it.each(points('remove'))(
    'the GridManager dies at %s while jobs are removed',
    async (point) => {
      const { cluster, ledger } = await submit(600);
      await until('the jobs to run', () => lines(ledger).length === JOBS || undefined, 120_000);
      writeFileSync(crashFile, point);
      await agent.ok('rm', String(cluster));
      await until(`a crash at ${point}`, () => !existsSync(crashFile) || undefined, 120_000);
      await agent.ok('wait', '--no-outcome', '--timeout', '200', String(cluster));
      expect((await agent.ads(cluster)).map((ad) => ad['JobStatus'])).toEqual([3, 3]);
      await nothingLeft(grid, agent);
    },
    400_000,
  );
});
