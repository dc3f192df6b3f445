import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent, until } from '../agent/agent.ts';
import { processesOf } from '../agent/kill.ts';
import { type Gates, makeGates } from '../gram/gates.ts';
import { type Grid, startGrid } from '../gram/kit.ts';
import { nothingLeft } from '../gram/left.ts';
import { type Events, eventGenerator } from '../sites/event-generator.ts';
import { mayMount, missingPrograms, POLLING, processesWith } from '../sites/gatekeeper.ts';
import { some } from '../slow.ts';
import { HERE } from './points.ts';

const SKIP = missingPrograms().length > 0 || !mayMount();
/**
 * Jobs per stage; one at the last, because a second job's results would go to a GridManager that dies for the first's.
 */
const jobsAt = (stage: string) => (stage === 'at their end' ? ['0'] : ['0', '1']);
let scratch: string;
let gates: Gates;
let events: Events | undefined;
let grid: Grid;
let agent: TestAgent;
let crashFile: string;

beforeAll(async () => {
  if (SKIP) return;
  scratch = mkdtempSync(join(tmpdir(), 'grm-'));
  gates = makeGates(join(scratch, 'gates'));
  events = eventGenerator();
  const options = events?.gatekeeper ?? POLLING;
  grid = await startGrid({ ...options, mounts: { ...options.mounts, ...gates.mounts } });
  agent = new TestAgent({ X509_CERT_DIR: grid.ca.trust, X509_USER_PROXY: grid.proxyFile });
  crashFile = join(agent.dir, 'crash-point');
  agent.env['GRYPHUS_CRASH_FILE'] = crashFile;
  agent.config('[gridmanager]\nrestart_max = "100ms"\nretry_max = "1s"\n');
  await agent.ok('up');
}, 120_000);
afterAll(async () => {
  if (SKIP) return;
  gates.open();
  await agent.end();
  await grid.stop();
  events?.stop();
  rmSync(scratch, { recursive: true, force: true });
}, 120_000);

const lines = (file: string): string[] =>
  existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];
const hasCrashed = () => until('the crash', () => !existsSync(crashFile) || undefined, 120_000);
/** While the Scheduler is stopped, a GridManager that died stays dead. */
const signalScheduler = (signal: NodeJS.Signals) => {
  for (const pid of processesOf('scheduler/main.js', agent)) process.kill(pid, signal);
};

interface Jobs {
  readonly procs: readonly string[];
  readonly cluster: number;
  readonly ledger: string;
  readonly go: string;
}

/** Jobs that write a line to a ledger when they start, and end when they are allowed to. */
async function submit(procs: readonly string[]): Promise<Jobs> {
  const name = Math.random().toString(36).slice(2);
  const [ledger, go] = [join(agent.work, `ledger-${name}`), join(agent.work, `go-${name}`)];
  agent.file(
    'job.sh',
    '#!/bin/sh\necho "$1" >>"$2"\necho "out $1"\nwhile ! [ -e "$3" ]; do sleep 0.1; done\necho "file $1" >"r$1"\n',
    0o755,
  );
  const cluster = await agent.submit(
    [
      'universe = grid',
      `grid_resource = gt2 ${grid.gate.address}/jobmanager-fork`,
      'executable = job.sh',
      `arguments = $(Process) ${ledger} ${go}`,
      'output = o$(Process)',
      'transfer_output_files = r$(Process)',
      `queue ${procs.length}`,
    ].join('\n'),
  );
  return { procs, cluster, ledger, go };
}

/** Every GridManager dies there, until both jobs have come this far; then none is left. */
async function stopAt(
  procs: readonly string[],
  point: string,
  words: RegExp,
  meanwhile: (jobs: Jobs) => Promise<void> = async () => undefined,
): Promise<Jobs> {
  writeFileSync(crashFile, `!${point}`);
  const jobs = await submit(procs);
  await meanwhile(jobs);
  for (const proc of procs) {
    const why = () => agent.ok('why', `${jobs.cluster}.${proc}`);
    await until(`job ${proc} at ${point}`, async () => words.test(await why()) || undefined, 120_000);
  }
  signalScheduler('SIGSTOP');
  await until('no GridManager', () => processesOf('gridmanager/main.js', agent).length === 0 || undefined);
  return jobs;
}

/** Where a job may be at the service, how it is kept there, and whether it has started by then. */
const STAGES = {
  'not committed yet': {
    started: false,
    reach: (procs: readonly string[]) => stopAt(procs, 'gm.before-commit', /about to be submitted/),
  },
  'on their way in': {
    started: false,
    reach: async (procs: readonly string[]) => {
      gates.shut('in');
      const jobs = await submit(procs);
      await until('the stage-in', () => gates.isWaitedAt('in') || undefined, 120_000);
      return jobs;
    },
  },
  running: {
    started: true,
    reach: async (procs: readonly string[]) => {
      const jobs = await submit(procs);
      await until('the starts', () => lines(jobs.ledger).length === procs.length || undefined, 120_000);
      return jobs;
    },
  },
  'on their way out': {
    started: true,
    reach: async (procs: readonly string[]) => {
      gates.shut('out');
      const jobs = await submit(procs);
      writeFileSync(jobs.go, '');
      await until('the starts', () => lines(jobs.ledger).length === procs.length || undefined, 120_000);
      await until('the stage-out', () => gates.isWaitedAt('out') || undefined, 120_000);
      return jobs;
    },
  },
  'at their end': {
    started: true,
    reach: (procs: readonly string[]) =>
      stopAt(procs, 'gm.before-fetch', /has ended at site/, async ({ go }) => writeFileSync(go, '')),
  },
} as const;

const POINTS = Object.entries(HERE).flatMap(([point, how]) => (how === 'remove' ? [point] : []));
const CASES = POINTS.flatMap((point) =>
  Object.keys(STAGES).flatMap((stage) =>
    (['rm', 'hold'] as const)
      // A job that has ended is held with its results: nothing is cancelled.
      .filter((action) => action === 'rm' || stage !== 'at their end')
      .map((action) => [action, stage as keyof typeof STAGES, point] as const),
  ),
);

describe.skipIf(SKIP)('what is withdrawn from a GRAM service leaves nothing, and starts no more', () => {
  it.each(some(CASES, 19))(
    '%s, jobs %s, the GridManager dies at %s',
    async (action, stage, point) => {
      const { started, reach } = STAGES[stage];
      const { procs, cluster, ledger, go } = await reach(jobsAt(stage));
      writeFileSync(crashFile, point);
      await agent.ok(action, String(cluster));
      signalScheduler('SIGCONT');
      await hasCrashed();
      gates.open();
      const wanted = action === 'rm' ? 3 : 5;
      await until(
        `jobs to be ${wanted}`,
        async () => (await agent.ads(cluster)).every((ad) => ad['JobStatus'] === wanted) || undefined,
        120_000,
      );
      await nothingLeft(grid, agent);
      await until('their processes to be gone', () => processesWith('sh', ledger).length === 0 || undefined);
      const runs = started ? procs : [];
      expect(lines(ledger).sort()).toEqual(runs);
      if (action === 'rm') return;
      writeFileSync(go, '');
      await agent.ok('release', String(cluster));
      await agent.ok('wait', '--no-outcome', '--timeout', '200', String(cluster));
      expect(lines(ledger).sort()).toEqual([...runs, ...procs].sort());
      for (const [name, text] of procs.flatMap((n) => [
        [`o${n}`, `out ${n}\n`] as const,
        [`r${n}`, `file ${n}\n`] as const,
      ])) {
        expect(agent.read(name)).toBe(text);
        rmSync(join(agent.work, name));
      }
      await nothingLeft(grid, agent);
    },
    400_000,
  );
});
