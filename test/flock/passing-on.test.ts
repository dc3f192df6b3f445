import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../agent/agent.ts';
import { PoolsInLine } from './pools-in-line.ts';

const WAIT_MS = 240_000;
const canRun = process.getuid?.() === 0 && spawnSync('which', ['unshare']).status === 0;
if (!canRun) process.stderr.write('Tests of three pools in a line are left out: they need root.\n');

describe.runIf(canRun)('three pools in a line', () => {
  let pools: PoolsInLine;
  beforeAll(async () => {
    pools = await new PoolsInLine().open();
  }, 300_000);
  afterAll(() => pools?.end(), 120_000);

  it('pass nothing on unless each of them was told to', async () => {
    const { a, b, c } = pools;
    await until('b to borrow from c', async () => (await pools.shown(b, 'c'))?.offered === 2 || undefined, WAIT_MS);
    pools.passOn();
    await pools.untilBeyond(2);
    for (const [agent, partner, key, told] of [
      [a, 'b', 'hops', '1'],
      [b, 'a', 'forward', '["c"]'],
      [c, 'b', 'forwarded', 'true'],
    ] as const) {
      pools.agree(agent, partner, key, undefined);
      await pools.untilBeyond(0);
      pools.agree(agent, partner, key, told);
      await pools.untilBeyond(2);
    }
  }, 300_000);

  it('run a job of the first in the last, and bring its results home', async () => {
    const { a, b, c } = pools;
    const before = pools.starts.length;
    const cluster = await pools.submit(1, 12);
    await pools.untilStarted(before + 1);
    for (const [agent, partner, way] of [
      [a, 'b', 'there running: here → b → c'],
      [b, 'a', 'here running: a → here → c'],
      [b, 'c', 'there running: a → here → c'],
      [c, 'b', 'here running: a → b → here'],
    ] as const) {
      const isShown = async () => {
        const jobs = (await pools.shown(agent, partner))?.jobs ?? [];
        return jobs.some((job) => `${job.where} ${job.is}: ${job.way}` === way) || undefined;
      };
      await until(way, isShown, WAIT_MS);
    }
    const [ad] = await a.ads(cluster);
    expect(ad?.['RemoteHost']).toMatch(/@c~via~b$/);
    await pools.untilEvents('005', 1);
    expect([a.read('o.0'), a.read('out.0')]).toEqual(['input\n', 'input\n']);
    expect(pools.log()).toMatch(/c~via~b/);
    expect(pools.starts.length).toBe(before + 1);
  }, 300_000);

  it('run it once, although the gateway in the middle is killed again and again', async () => {
    const before = pools.starts.length;
    await pools.submit(4, 6);
    await pools.untilStarted(before + 1);
    pools.kill(pools.b, 'flock/gateway.pid');
    await pools.untilStarted(before + 3);
    pools.kill(pools.b, 'flock/gateway.pid');
    await pools.untilEvents('005', 4);
    const starts = pools.starts.slice(before);
    expect([starts.length, new Set(starts).size, pools.events('004')]).toEqual([4, 4, 0]);
    for (const n of [0, 1, 2, 3]) expect(pools.a.read(`out.${n}`)).toBe('input\n');
  }, 300_000);

  it('name who refused, by which clause, on which path', async () => {
    const { a, c } = pools;
    const before = pools.starts.length;
    pools.agree(c, 'b', 'users', '["nobody@a"]');
    const cluster = await pools.submit(1, 1);
    const refusal = /partner b: partner c \(users\): \w+@a is not among the users/;
    const isNamed = async () => refusal.test(await a.ok('why', `${cluster}.0`)) || undefined;
    await until('why to name it', isNamed, WAIT_MS);
    const shown = async () =>
      (await pools.shown(a, 'b'))?.refusals.some(
        ({ by, clause, message }) => by === 'them' && clause === 'forward' && message.startsWith('partner c (users): '),
      ) || undefined;
    await until('flock show to name it', shown, WAIT_MS);
    pools.agree(c, 'b', 'users', undefined);
    await pools.untilEvents('005', 1);
    expect(pools.starts.length).toBe(before + 1);
  }, 300_000);

  it('give way to a job of the pool in the middle', async () => {
    const { a, b } = pools;
    const before = pools.starts.length;
    const cluster = await pools.submit(2, 600);
    await pools.untilStarted(before + 2);
    const lines = ['executable = /bin/true', 'transfer_executable = false', 'requirements = FlockPool =?= "c"'];
    const own = await b.submit([...lines, 'log = own.log', 'queue', ''].join('\n'));
    await until('its job to end', async () => (await b.ads(own))[0]?.['JobStatus'] === 4 || undefined, WAIT_MS);
    expect(pools.events('004')).toBeGreaterThan(0);
    await a.ok('rm', String(cluster));
  }, 300_000);

  it('hold a job at home whose results are too large for the pool in the middle', async () => {
    const { a, b } = pools;
    pools.agree(b, 'c', 'max_result', '3');
    const cluster = await pools.submit(1, 1);
    await pools.untilEvents('012', 1);
    expect((await a.ads(cluster))[0]?.['HoldReason']).toMatch(
      /partner b: .* more than max_result of the agreement with c allows/,
    );
    pools.agree(b, 'c', 'max_result', undefined);
    // The agreement is in force within two seconds; until then, it is held again.
    const isHome = async () => {
      const [ad] = await a.ads(cluster);
      if (ad?.['JobStatus'] === 5) await a.run(['release', String(cluster)]);
      return ad?.['JobStatus'] === 4 || undefined;
    };
    await until('its results to come', isHome, WAIT_MS);
    expect(a.read('out.0')).toBe('input\n');
  }, 300_000);

  it('end a job that is passed on when an agreement does not allow it any more, and name who said so', async () => {
    const { a, b, c } = pools;
    const before = pools.starts.length;
    const cluster = await pools.submit(1, 600);
    await pools.untilStarted(before + 1);
    pools.agree(b, 'a', 'forward', undefined);
    await pools.untilEvents('004', 1);
    pools.agree(b, 'a', 'forward', '["c"]');
    await pools.untilStarted(before + 2);
    pools.agree(c, 'b', 'forwarded', undefined);
    await pools.untilEvents('004', 2);
    pools.agree(c, 'b', 'forwarded', 'true');
    await pools.untilStarted(before + 3);
    await b.ok('flock', 'rm', 'a');
    await pools.untilEvents('004', 3);
    const isFree = async () => (await pools.shown(c, 'b'))?.jobs.length === 0 || undefined;
    await until('nothing of it to be left at c', isFree, WAIT_MS);
    await a.ok('rm', String(cluster));
  }, 300_000);
});
