import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CrashPoint } from '../../src/util/crash-point.ts';
import { parseUserLog } from '../../src/user-log/text.ts';
import { TestAgent, until } from '../agent/agent.ts';
import { killMatching } from '../agent/kill.ts';
import { SLOW } from '../slow.ts';

const HELPER = join(
  import.meta.dirname,
  '../..',
  process.env['GRYPHUS_DIST'] ?? 'dist',
  `native/${process.arch}/gryphus-helper`,
);

/** It counts until it is over, and does not know that it is moved. Each number has its own line in `$1.all`. */
const COUNTER = `#!/bin/sh
echo start >>"$1"
n=0
while [ ! -e "$1.over" ]; do n=$((n + 1)); echo $n; echo $n >"$1.at"; sleep 0.02; done
echo "ended at $n"
`;

/** Where an image is taken, sent, kept and restored. */
const OUR_POINTS: readonly CrashPoint[] = [
  'worker.before-stop',
  'checkpoint.before-save',
  'checkpoint.saved',
  'checkpoint.taken',
  'worker.before-end',
  'worker.after-end',
  'central-manager.before-end',
  'central-manager.saved-end',
  'gm.before-fetch',
  'gm.after-fetch',
  'checkpoint.kept',
  'checkpoint.sent',
  'gm.saved-fetch',
  'gm.saved-decide',
  'gm.saved-forget',
  'central-manager.saved-prepare',
  'central-manager.saved-grant',
  'worker.saved-record',
  'checkpoint.before-restore',
  'worker.after-start',
];
/** Of native/. */
const HELPER_POINTS = ['stopped', 'asking', 'asked', 'written', 'based', 'named', 'saved'].map((at) => `helper.${at}`);
const RESTORE_POINTS = ['placed', 'made', 'rebuilt', 'released'].map((at) => `restore.${at}`);

describe.skipIf(!existsSync(HELPER) || !SLOW)('a checkpoint in which a process dies', () => {
  const agent = new TestAgent();
  const file = join(agent.dir, 'crash');
  beforeAll(async () => {
    agent.env['GRYPHUS_CRASH_FILE'] = file;
    agent.config('[pool]\ncpus = 1\n[gridmanager]\nrestart_max = "100ms"\nretry_max = "1s"\n');
    agent.file('counter.sh', COUNTER, 0o755);
    await agent.ok('up');
  }, 120_000);
  afterAll(async () => {
    killMatching('worker.mjs', agent);
    await agent.end();
  });

  let jobs = 0;
  async function counter() {
    rmSync(file, { force: true });
    const name = `job${++jobs}`;
    const ledger = join(agent.work, `${name}.ledger`);
    const cluster = await agent.submit(
      `executable = counter.sh\narguments = ${ledger}\nwant_checkpoint = true\noutput = ${name}.out\nlog = ${name}.log\n` +
        `environment = "GRYPHUS_CRASH_FILE=${file}"\nqueue\n`,
    );
    const at = () => (existsSync(`${ledger}.at`) ? Number(readFileSync(`${ledger}.at`, 'utf8')) : 0);
    const beyond = (n: number) => until(`count ${n}`, () => at() > n || undefined, 90_000);
    const events = (type: string) => parseUserLog(agent.read(`${name}.log`)).events.filter((one) => one.type === type);
    await beyond(10);
    return { name, ledger, cluster, at, beyond, events };
  }
  type Counter = Awaited<ReturnType<typeof counter>>;
  async function finish({ ledger, name, cluster, at }: Counter): Promise<void> {
    writeFileSync(`${ledger}.over`, '');
    await agent.ok('wait', '--no-outcome', '--timeout', '90', String(cluster));
    const last = at();
    const lines = Array.from({ length: last }, (_, n) => `${n + 1}\n`).join('');
    expect(agent.read(`${name}.out`)).toBe(`${lines}ended at ${last}\n`);
    expect((await agent.ads(cluster))[0]).toMatchObject({ JobStatus: 4, ExitCode: 0, NumJobCompletions: 1 });
  }
  const vacate = ({ cluster }: Counter) =>
    until(
      'it to be vacated',
      async () => (await agent.run(['vacate', String(cluster)])).code === 0 || undefined,
      60_000,
    );
  /** What an attempt did after its image is done again by the next. */
  const goesOn = ({ at, beyond }: Counter) => beyond(at() + 10);
  const reached = (point: string) => until(`${point} to be reached`, () => !existsSync(file) || undefined, 90_000);

  /** One that has an image, and has gone on for a while since. */
  async function counterWithImage(): Promise<Counter> {
    const job = await counter();
    await vacate(job);
    await until('its first image', () => job.events('evicted').length === 1 || undefined, 90_000);
    await goesOn(job);
    return job;
  }
  /** Its process dies at the point while `act` is done; from its last image it goes on to its end, its output once. */
  async function survives(job: Counter, point: string, act: () => Promise<unknown>): Promise<void> {
    writeFileSync(file, point);
    await act();
    await reached(point);
    await agent.ok('up');
    await until('its second eviction', () => job.events('evicted').length >= 2 || undefined, 90_000);
    await goesOn(job);
    await finish(job);
    // Never from its start again: there is an image from before.
    expect(readFileSync(job.ledger, 'utf8')).toBe('start\n');
  }

  it.each([...OUR_POINTS, ...HELPER_POINTS])(
    'at %s goes on from the last whole image, with its output once',
    async (point) => {
      const job = await counterWithImage();
      await survives(job, point, () => vacate(job).catch(() => undefined));
    },
    300_000,
  );

  it.each(HELPER_POINTS)(
    'at %s while it is only asked for: it goes on, from its last image if need be',
    async (point) => {
      const job = await counterWithImage();
      await survives(job, point, () => agent.ok('checkpoint', String(job.cluster)));
    },
    300_000,
  );

  it.each(RESTORE_POINTS)(
    'at %s goes on from the image again',
    async (point) => {
      const job = await counter();
      await survives(job, point, () => vacate(job));
    },
    300_000,
  );
});
