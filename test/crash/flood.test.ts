import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SITE_CRASH_POINTS } from '../../src/jobmanager/crash-points.ts';
import type { CrashPoint } from '../../src/util/crash-point.ts';
import { TestAgent, until } from '../agent/agent.ts';
import { killMatching } from '../agent/kill.ts';
import { skipWithoutSlurm } from '../sites/slurm.ts';
import { SLOW, some } from '../slow.ts';
import { agentDir, attemptsAt, type Kind, startTarget, type Target } from './sites.ts';

/** The points on the path of candidates, their grant, and the losers' withdrawal: an ordinary run takes every third. */
const FLOOD: readonly CrashPoint[] = [
  'gm.saved-grant',
  'gm.after-prepare',
  'gm.before-cancel',
  'gm.before-grant',
  'gm.saved-prepare',
  'gm.after-cancel',
  'gm.after-grant',
  'gm.after-commit',
  'gm.saved-commit',
  'gm.saved-cancel',
];
const TAKE_BACK: readonly CrashPoint[] = ['gm.after-cancel', 'gm.before-cancel', 'gm.saved-cancel'];
const LEAVE = SITE_CRASH_POINTS.filter((point) => point.startsWith('jm.leave'));
const JOBS = 3;
const KINDS: readonly Kind[] = SLOW ? ['fork, local', 'fork, ssh', 'slurm, ssh'] : ['fork, local'];

describe.each(KINDS)('jobs that the broker sends to several sites start once, whatever crashes: %s', (kind) => {
  const skip = kind === 'slurm, ssh' && skipWithoutSlurm();
  let agent: TestAgent;
  let target: Target;
  let name: string;
  let crashFile: string;

  beforeAll(async () => {
    if (skip) return;
    agent = new TestAgent();
    crashFile = join(agent.dir, 'crash-point');
    agent.env['GRYPHUS_CRASH_FILE'] = crashFile;
    agent.config('[gridmanager]\nrestart_max = "100ms"\nretry_max = "1s"\n');
    target = await startTarget(kind, agent);
    name = target.resource?.split(' ').at(-1) ?? '';
    const scratch = JSON.stringify(join(agent.dir, 'scratch'));
    agent.site('other', { url: 'local', batch: 'fork', more: `scratch = ${scratch}\n[limits]\nrunning = 2\n` });
    await agent.ok('up');
    const { cluster, ledger } = await submit(atBoth(), FLOODED);
    await finish(cluster, ledger);
  }, 120_000);
  afterAll(async () => {
    if (skip) return;
    await agent.end();
    await target.stop();
  });

  const FLOODED = 'want_flood = true';
  const at = (site: string) => `requirements = TARGET.Name == "${site}"`;
  const atBoth = () => `requirements = TARGET.Name == "${name}" || TARGET.Name == "other"`;

  /** Jobs that write a line to a ledger when they start, and to stdout. */
  async function submit(...more: string[]): Promise<{ cluster: number; ledger: string }> {
    const ledger = join(agent.work, `ledger-${Math.random().toString(36).slice(2)}`);
    agent.file('job.sh', '#!/bin/sh\necho "$1" >> "$2"\necho "out $1"\n', 0o755);
    const lines = ['executable = job.sh', `arguments = $(Process) ${ledger}`, 'output = o$(Process)'];
    const cluster = await agent.submit(['universe = grid', ...lines, ...more, `queue ${JOBS}`].join('\n'));
    return { cluster, ledger };
  }

  async function finish(cluster: number, ledger: string): Promise<void> {
    await agent.ok('wait', '--no-outcome', '--timeout', '90', String(cluster));
    expect(readFileSync(ledger, 'utf8').split('\n').filter(Boolean).sort()).toEqual(['0', '1', '2']);
    for (let proc = 0; proc < JOBS; proc++) expect(agent.read(`o${proc}`)).toBe(`out ${proc}\n`);
    // Candidates may outlive their job until their withdrawal is complete.
    await until(
      'all to be forgotten',
      () => [...attemptsAt(target), ...attemptsAtOther()].length === 0 || undefined,
      60_000,
    );
  }

  function attemptsAtOther(): string[] {
    const jobs = (readdirSync(join(agent.dir, 'scratch'), { recursive: true }) as string[]).filter((path) =>
      /^[^/]+\/[^/]+\/jobs$/.test(path),
    );
    expect(jobs).toHaveLength(1);
    return jobs.flatMap((path) => readdirSync(join(agent.dir, 'scratch', path)));
  }

  const crashed = (file: string) => until('the crash', () => !existsSync(file) || undefined, 60_000);

  it.skipIf(skip).each(some(FLOOD, 3))(
    'the GridManager dies at %s while jobs are flooded',
    async (point) => {
      writeFileSync(crashFile, point);
      const { cluster, ledger } = await submit(point.endsWith('grant') ? at(name) : atBoth(), FLOODED);
      await crashed(crashFile);
      await finish(cluster, ledger);
    },
    120_000,
  );

  it.skipIf(skip).each(some(LEAVE, 2))(
    'the JobManager dies at %s',
    async (point) => {
      const file = join(agentDir(target) ?? '', 'crash-point');
      writeFileSync(file, point);
      // A JobManager reads at its start where it is to die.
      killMatching('jobmanager.sh', agent, target.sshd?.home);
      const { cluster, ledger } = await submit(at(name), FLOODED);
      await crashed(file);
      await finish(cluster, ledger);
    },
    120_000,
  );

  it.skipIf(skip).each(some(TAKE_BACK, 3))(
    'the GridManager dies at %s while jobs are taken back from a full site',
    async (point) => {
      const go = agent.file('full', '');
      agent.file('block.sh', '#!/bin/sh\nwhile [ -e "$1" ]; do sleep 0.1; done\n', 0o755);
      const blockers = await agent.submit(
        [
          'universe = grid',
          'grid_resource = batch fork other',
          'executable = block.sh',
          `arguments = ${go}`,
          'queue 2',
        ].join('\n'),
      );
      await until(
        'the blockers',
        async () => (await agent.ads(blockers)).every((ad) => ad['JobStatus'] === 2) || undefined,
      );
      // Nothing else is withdrawn here.
      writeFileSync(crashFile, point);
      const { cluster, ledger } = await submit(atBoth(), 'rank = TARGET.Name == "other"', '+GryphusMaxWait = 2');
      await crashed(crashFile);
      await agent.ok('wait', '--no-outcome', '--timeout', '90', String(cluster));
      expect((await agent.ads(cluster)).some((ad) => ad['GryphusTakenBackFrom'] === 'other')).toBe(true);
      rmSync(go);
      await agent.ok('wait', '--no-outcome', '--timeout', '60', String(blockers));
      await finish(cluster, ledger);
    },
    180_000,
  );
});
