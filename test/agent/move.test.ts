import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent, until } from './agent.ts';

let agent: TestAgent;

/** Each start of a job writes a line: the site's scratch directory, and the proc. */
const program = (more = ':') => `executable = /bin/sh
arguments = "-c 'echo $(Process) $PWD >> ${agent.dir}/ledger-$(Cluster); ${more}'"
transfer_executable = false
should_transfer_files = YES
log = job.$(Cluster).log`;

/** Where each proc was started, in order of procs. */
function starts(cluster: number): string[] {
  const file = join(agent.dir, `ledger-${cluster}`);
  const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
  return lines
    .map((line) => /^(\d+) (.*)$/.exec(line))
    .map((found) => [Number(found?.[1]), /\/(one|two|slurm)\//.exec(found?.[2] ?? '')?.[1] ?? 'pool'] as const)
    .sort(([a], [b]) => a - b)
    .map(([proc, site]) => `${proc} ${site}`);
}

const places = (cluster: number): Promise<string> =>
  agent.ok('q', String(cluster), '-af', 'ProcId', 'GryphusSite', 'GridResource', 'JobStatus');
const done = (cluster: number): Promise<string> => agent.ok('wait', '--no-outcome', String(cluster), '--timeout', '90');

beforeAll(async () => {
  agent = new TestAgent();
  for (const name of ['one', 'two']) {
    const more = `scratch = "${agent.dir}/${name}"\n[limits]\nrunning = 2\npoll_min = "1s"\n`;
    agent.site(name, { url: 'local', batch: 'fork', more });
  }
  await agent.ok('up');
});
afterAll(() => agent.end());

describe('move', { timeout: 180_000 }, () => {
  it('sends held jobs to another site, where alone they run; all answers agree', async () => {
    const cluster = await agent.submit(
      `universe = grid\ngrid_resource = batch fork one\nhold = true\n${program()}\nqueue 3\n`,
    );
    expect(await agent.ok('move', `${cluster}.0`, 'two')).toBe(`Job ${cluster}.0 moved to two\n`);
    expect(await agent.ok('edit', `${cluster}.1`, 'GridResource="batch fork two"', 'JobPrio=3')).toBe(
      `Job ${cluster}.1 moved to two\nSet attribute "GridResource" for 1 matching jobs.\nSet attribute "JobPrio" for 1 matching jobs.\n`,
    );
    expect(await places(cluster)).toBe('0 two batch fork two 5\n1 two batch fork two 5\n2 one batch fork one 5\n');
    expect(await agent.ok('move', `${cluster}`, 'two', '--constraint', 'ProcId == 2')).toBe(
      `All jobs in cluster ${cluster} matching constraint (ProcId == 2) have been moved to two (1 job)\n`,
    );
    await agent.ok('release', `${cluster}`);
    await done(cluster);
    expect(starts(cluster)).toEqual(['0 two', '1 two', '2 two']);
    const log = agent.read(`job.${cluster}.log`);
    expect(log.match(/GridResource: .*/g)?.every((line) => line === 'GridResource: batch fork two')).toBe(true);
    expect(await agent.ok('history', `${cluster}`, '-af', 'GridResource', 'GryphusSite', 'JobPrio')).toMatch(
      /^(batch fork two two [03]\n){3}$/,
    );
  });

  it('takes back what waits in the queue of its site, and leaves alone what has started', async () => {
    const go = join(agent.dir, 'go-1');
    const cluster = await agent.submit(
      `universe = grid\ngrid_resource = batch fork one\n${program(`while [ ! -e ${go} ]; do sleep 0.1; done`)}\nqueue 6\n`,
    );
    await until('two to run and four to wait', async () => {
      const seen = await agent.ok('q', `${cluster}`, '-af', 'GryphusState');
      return seen.match(/running/g)?.length === 2 && seen.match(/committed/g)?.length === 4 ? seen : undefined;
    });
    const moved = await agent.run(['move', `${cluster}`, 'two']);
    expect(moved).toMatchObject({ code: 0, stderr: '' });
    expect(moved.stdout).toMatch(/have been marked for two, unless already started at one \(4 jobs; 2 runs at one: /);
    await until('four at two', async () => {
      const seen = await places(cluster);
      return seen.match(/ two batch fork two [12]$/gm)?.length === 4 ? seen : undefined;
    });
    const waiting = (await places(cluster)).match(/^(\d) two .* 1$/m)?.[1];
    if (waiting !== undefined) expect(await agent.ok('why', `${cluster}.${waiting}`)).toContain('site two');
    await agent.ok('rm', `${cluster}`, '--constraint', 'GryphusSite == "one"', '--reason', 'enough');
    agent.file('../go-1', '');
    await done(cluster);
    const seen = starts(cluster);
    expect(seen.map((line) => line.slice(0, 1))).toEqual(['0', '1', '2', '3', '4', '5']);
    expect(seen.filter((line) => line.endsWith('two'))).toHaveLength(4);
  });

  it('a job that runs is held, moved while its site stops it, and released', async () => {
    const go = join(agent.dir, 'go-2');
    const cluster = await agent.submit(
      `universe = grid\ngrid_resource = batch fork one\n${program(`while [ ! -e ${go} ]; do sleep 0.1; done`)}\nqueue\n`,
    );
    await agent.ok('wait', `${cluster}`, '--until', 'start', '--timeout', '60');
    const refused = await agent.run(['move', `${cluster}.0`, 'two']);
    expect(refused).toMatchObject({
      code: 1,
      stderr: `Job ${cluster}.0 runs at one: hold it first, move it, release it\n`,
    });
    await agent.ok('hold', `${cluster}.0`);
    expect((await agent.run(['move', `${cluster}.0`, 'two'])).code).toBe(0);
    await agent.ok('release', `${cluster}.0`);
    agent.file('../go-2', '');
    await done(cluster);
    expect(starts(cluster)).toEqual(['0 one', '0 two']);
  });

  it('between the pool and a site, both ways', async () => {
    const vanilla = await agent.submit(`hold = true\n${program()}\nqueue\n`);
    const grid = await agent.submit(
      `universe = grid\ngrid_resource = batch fork one\nhold = true\n${program()}\nqueue\n`,
    );
    await agent.ok('move', `${vanilla}.0`, 'two');
    await agent.ok('move', `${grid}.0`, '--pool');
    expect(await places(vanilla)).toBe('0 two batch fork two 5\n');
    expect(await places(grid)).toBe('0 pool undefined 5\n');
    await agent.ok('release', `${vanilla}`, `${grid}`);
    await done(vanilla);
    await done(grid);
    expect([...starts(vanilla), ...starts(grid)]).toEqual(['0 two', '0 pool']);
  });

  it('to and fro while they start: each starts once', async () => {
    const jobs = 60;
    const cluster = await agent.submit(
      `universe = grid\ngrid_resource = batch fork one\n${program('sleep 0.05')}\nqueue ${jobs}\n`,
    );
    const ends = done(cluster).then(() => true);
    for (let turn = 0; !(await Promise.race([ends, Promise.resolve(false)])); turn++) {
      await agent.run(['move', `${cluster}`, turn % 2 === 0 ? 'two' : 'one']);
    }
    const seen = starts(cluster);
    expect(seen.map((line) => Number(line.split(' ')[0]))).toEqual(Array.from({ length: jobs }, (_, proc) => proc));
    expect(new Set(seen.map((line) => line.split(' ')[1])).size).toBe(2);
    const ads = await agent.ads(cluster);
    expect(ads.map((ad) => [ad['JobStatus'], ad['ExitCode']])).toEqual(ads.map(() => [4, 0]));
    for (const site of ['one', 'two']) expect(await agent.ok('site', 'audit', site)).toContain('agree');
  });

  it('refuses what cannot be', async () => {
    const cluster = await agent.submit(`hold = true\n${program()}\nqueue\n`);
    const nowhere = await agent.run(['move', `${cluster}`, 'tow']);
    expect([nowhere.code, nowhere.stderr]).toEqual([68, expect.stringContaining("Did you mean 'two'?")]);
    expect((await agent.run(['move', `${cluster}`])).code).toBe(2);
    expect((await agent.run(['move', 'two'])).code).toBe(2);
    const twice = await agent.run(['move', `${cluster}.0`, 'pool']);
    expect([twice.code, twice.stderr]).toEqual([1, `Job ${cluster}.0 already at pool\n`]);
    const universe = await agent.run(['edit', `${cluster}`, 'JobUniverse=9']);
    expect([universe.code, universe.stderr]).toEqual([77, expect.stringContaining('gryphus move JOBS SITE')]);
    const odd = await agent.run(['edit', `${cluster}`, 'GridResource=elsewhere']);
    expect([odd.code, odd.stderr]).toEqual([65, expect.stringContaining('GridResource="elsewhere"')]);
    await agent.ok('rm', `${cluster}`);
  });
});
