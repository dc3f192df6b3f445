import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TestAgent, until } from '../agent/agent.ts';
import { daemons } from '../agent/everything.ts';
import { seeded } from '../seeded.ts';
import { SLOW } from '../slow.ts';

const MAIN = join(import.meta.dirname, '../..', process.env['GRYPHUS_DIST'] ?? 'dist', 'scheduler/main.js');
/** A daemon that is told to end has 5 s. */
const LIMIT_MS = 5000;
const ROUNDS = 50;
const SEED = Number(process.env['GRYPHUS_SEED'] ?? 1);

interface Start {
  readonly child: ChildProcess;
  readonly ready: Promise<void>;
  readonly ended: Promise<number | null>;
  readonly said: () => string;
}

describe('a Scheduler that is told to end while it starts', () => {
  let agent: TestAgent;
  beforeEach(() => {
    agent = new TestAgent();
  });
  afterEach(() => agent.end());

  function start(env: NodeJS.ProcessEnv = {}): Start {
    const child = spawn(process.execPath, [MAIN], { env: { ...agent.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    const ready = new Promise<void>((resolve) => child.stdout.once('data', () => resolve()));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
    return { child, ready, ended, said: () => said };
  }

  /** Tells it, and how long it then takes until nothing is left of the agent, with the exit status. */
  async function tell({ child, ended }: Start) {
    const since = performance.now();
    child.kill('SIGTERM');
    const code = await ended;
    // What was told by a process that has ended may take a moment more.
    await until('nothing left', () => daemons(agent).length === 0 || undefined, LIMIT_MS).catch(() => undefined);
    return { code, took: performance.now() - since };
  }

  it('ends the Redis that it was just starting, and says so to the command that started it', async () => {
    const begun = join(agent.work, 'begun');
    const server = agent.file('slow-redis', `#!/bin/sh\n: >${begun}\nsleep 1\nexec redis-server "$@"\n`, 0o755);
    const one = start({ GRYPHUS_REDIS_SERVER: server });
    await until('Redis to be started', () => existsSync(begun) || undefined);
    const { code, took } = await tell(one);
    // The program `sleep` of the script is not ours.
    expect(took).toBeLessThan(2000);
    await sleep(1200);
    expect(daemons(agent)).toEqual([]);
    expect({ code, said: one.said() }).toEqual({ code: 0, said: 'The Scheduler was told to end while it started.\n' });
  });

  it.runIf(SLOW)(
    `leaves nothing behind, at any of ${ROUNDS} instants, with jobs in the queue`,
    async () => {
      await agent.submit(
        'universe = grid\ngrid_resource = batch fork local\nexecutable = /bin/sleep\narguments = 3600\n' +
          'transfer_executable = false\nqueue\n',
      );
      await agent.submit('executable = /bin/true\nrequirements = Wanted =?= 1\nqueue\n');
      await agent.ok('down');
      expect(daemons(agent)).toEqual([]);
      const begin = performance.now();
      const first = start();
      await first.ready;
      const whole = performance.now() - begin;
      await tell(first);
      const random = seeded(SEED);
      for (let round = 0; round < ROUNDS; round++) {
        const one = start();
        const after = (round + random()) * ((1.3 * whole) / ROUNDS);
        await sleep(after);
        const { code, took } = await tell(one);
        const where = `round ${round}, ${Math.round(after)} of ${Math.round(whole)} ms\n${['scheduler.log', `gridmanager-${userInfo().username}.log`, 'pool.log'].map((name) => agent.log(name).slice(-800)).join('\n')}`;
        expect(daemons(agent), where).toEqual([]);
        expect(took, where).toBeLessThan(LIMIT_MS);
        // Before its first line, a signal ends it by itself: no exit status.
        expect([0, null], `${where}${one.said()}`).toContain(code);
      }
      // Its job is still there, and runs once.
      await agent.ok('wait', '--until', 'start', '--timeout', '60', '1');
      const [ad = {}] = await agent.ads(1);
      expect(ad).toMatchObject({ JobStatus: 2, NumJobStarts: 1 });
    },
    600_000,
  );
});
