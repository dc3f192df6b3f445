import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { X11 } from '../../../src/pool/owner/idle/x11.ts';
import { until } from '../../agent/agent.ts';
import { RealReturns } from './real-returns.ts';
import { SLOW } from '../../slow.ts';
import { Stations } from './stations.ts';
import { stopped, ticksOf } from './ticks.ts';

const DISPLAY = `:${90 + (process.pid % 500)}`;
const press = () => execFileSync('xdotool', ['key', 'a'], { env: { ...process.env, DISPLAY } });
/** How often an owner comes back to the machine: five seconds each. */
const RETURNS = Number(process.env['GRYPHUS_RETURNS'] ?? 30);
let server: ChildProcess;

beforeAll(async () => {
  server = spawn('Xvfb', [DISPLAY, '-screen', '0', '320x200x8', '-nolisten', 'tcp'], { stdio: 'ignore' });
  await until('the X server', () => existsSync(`/tmp/.X11-unix/X${DISPLAY.slice(1)}`) || undefined);
});
afterAll(() => server.kill());

it('an X display tells within two seconds that somebody pressed a key', async () => {
  let heard = 0;
  const x11 = new X11(() => (heard += 1));
  const idle = () => {
    const { sees, idle: seconds } = x11.look();
    return sees ? seconds : undefined;
  };
  await until('two idle seconds', () => (idle() ?? 0) > 2 || undefined);
  const before = heard;
  const at = performance.now();
  press();
  await until('the key to be seen', () => (idle() ?? 9) < 1 || undefined);
  expect(performance.now() - at).toBeLessThan(2000);
  expect(heard).toBeGreaterThan(before);
  x11.close();
});

it('an X display that vanishes is no sign, and no longer a source', async () => {
  const display = `:${600 + (process.pid % 300)}`;
  const dir = mkdtempSync('/tmp/x11-');
  const other = spawn('Xvfb', [display, '-screen', '0', '320x200x8', '-nolisten', 'tcp'], { stdio: 'ignore' });
  let heard = 0;
  const x11 = new X11(() => (heard += 1), process.env, dir);
  try {
    const socket = `/tmp/.X11-unix/X${display.slice(1)}`;
    await until('the X server', () => existsSync(socket) || undefined);
    symlinkSync(socket, join(dir, 'X1'));
    await until('its answer', () => x11.look().sees || undefined);
    const before = heard;
    other.kill('SIGKILL');
    await until('its end to be seen', () => !x11.look().sees || undefined, 3000);
    rmSync(join(dir, 'X1'));
    expect(x11.look()).toEqual({ sees: false, note: 'there is no X server here' });
    expect(heard).toBe(before);
  } finally {
    other.kill('SIGKILL');
    x11.close();
    rmSync(dir, { recursive: true });
    rmSync(`/tmp/.X11-unix/X${display.slice(1)}`, { force: true });
    rmSync(`/tmp/.X${display.slice(1)}-lock`, { force: true });
  }
});

describe.runIf(SLOW)('the owner of one of two machines, at an X display', () => {
  const stations = new Stations();
  beforeAll(
    () =>
      stations.open(
        'policy = "hunter"\nidle_sources = ["X11"]\npreempt = \'Activity == "Suspended" && ActivityTimer >= 4\'\n[pool.attributes]\nStartIdleTime = 2\nKeyboardBusy = "KeyboardIdle < 2"\nHighLoad = 1000.0\nBackgroundLoad = 1000.0\n',
      ),
    120_000,
  );
  afterAll(() => stations.close());

  it('stops the job within 2 s of a key, and after some seconds it goes on at the other machine', async () => {
    const cluster = await stations.forever('while :; do :; done & while :; do :; done');
    const key = await stations.runsAt(cluster, 'local');
    const keys = setInterval(press, 300);
    const at = Date.now();
    press();
    try {
      const took = (await stopped(key)) - at;
      expect(took).toBeLessThan(2000);
      const before = ticksOf(key);
      const suspended = await stations.moved(key, 'suspended');
      expect(suspended - at).toBeLessThan(2000);
      expect(ticksOf(key)).toBe(before);
      const vacated = await stations.moved(key, 'vacating');
      expect(vacated - suspended).toBeGreaterThan(2900);
      await stations.runsAt(cluster, 'other');
      expect(Date.now() - vacated).toBeLessThan(10_000);
      expect((await stations.ads(cluster))[0]).toMatchObject({ TotalSuspensions: 1, NumJobStarts: 2 });
      process.stderr.write(`stopped after ${took} ms, elsewhere after ${Date.now() - vacated} ms\n`);
    } finally {
      clearInterval(keys);
    }
  }, 120_000);
});

describe.runIf(SLOW)('owners who return at random, and daemons that are killed', () => {
  const stations = new Stations();
  beforeAll(
    () =>
      stations.open(
        'policy = "hunter"\nidle_sources = ["X11"]\npreempt = \'Activity == "Suspended" && ActivityTimer >= 2\'\n[pool.attributes]\nStartIdleTime = 1\nKeyboardBusy = "KeyboardIdle < 1"\nHighLoad = 1000.0\nBackgroundLoad = 1000.0\n',
        2,
      ),
    120_000,
  );
  afterAll(() => stations.close());

  it(
    'lose no job, run none twice, resume none under their hands, and lose no work',
    async () => {
      const world = new RealReturns(stations, press, 1988);
      await world.run(RETURNS);
      process.stderr.write(`${JSON.stringify(world.counted)}\n`);
      expect(world.wrong).toEqual([]);
      for (const count of ['suspended', 'vacated', 'workerDeaths', 'managerDeaths'] as const)
        expect(world.counted[count], count).toBeGreaterThan(0);
    },
    RETURNS * 12_000 + 200_000,
  );
});
