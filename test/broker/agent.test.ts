import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent, until } from '../agent/agent.ts';

let agent: TestAgent;
beforeAll(() => {
  agent = new TestAgent();
  for (const [name, cost, running] of SITES) {
    const more = `cost = ${cost}\nscratch = ${JSON.stringify(`${agent.dir}/${name}`)}\n[limits]\nrunning = ${running}\n`;
    agent.site(name, { url: 'local', batch: 'fork', more });
  }
});
afterAll(() => agent.end());
// Jobs that a test has left when it failed take the places that the next one, or another try, needs.
afterEach(async () => void (await agent.run(['rm', '--all'])));

/** Name, cost, jobs at once. */
const SITES = [
  ['cheap', 0.5, 1],
  ['dear', 4, 3],
] as const;

function description(script: string, more = '', count = 1): string {
  agent.file('job.sh', `#!/bin/sh\n${script}\n`, 0o755);
  const lines = ['executable = job.sh', 'universe = grid', 'output = out.$(Process)', 'log = log'];
  return [...lines, 'arguments = $(Process)', more, `queue ${count}`, ''].join('\n');
}

const ended = (cluster: number, count = 1) =>
  until(
    `the end of cluster ${cluster}`,
    async () => {
      const ads = await agent.ads(cluster);
      return ads.length === count && ads.every((ad) => ad['JobStatus'] === 4) ? ads : undefined;
    },
    100_000,
  );

describe('a job without grid_resource', { timeout: 240_000 }, () => {
  it('spreads over the sites as they fill, and its jobs run once each', async () => {
    const ran = agent.file('ran', '');
    const script = `echo "$1" >>'${ran}'; sleep 0.3`;
    const cluster = await agent.submit(description(script, 'requirements = TARGET.Name != "local"', 12));
    const ads = await ended(cluster, 12);
    expect(new Set(ads.map((ad) => ad['GridResource']))).toEqual(new Set(['batch fork cheap', 'batch fork dear']));
    const numbers = agent.read('ran').trim().split('\n').map(Number);
    expect(numbers.sort((a, b) => a - b)).toEqual(Array.from({ length: 12 }, (_, i) => i));
  });

  it('goes to the site that starts it soonest and costs least, and by its Rank to another', async () => {
    const mine = 'requirements = TARGET.Name != "local" && TARGET.OpSys == "LINUX" && TARGET.TotalCpus < 10';
    const [plain] = await ended(await agent.submit(description('echo done', mine)));
    expect(plain).toMatchObject({ GridResource: 'batch fork cheap', NumJobStarts: 1 });
    expect(String(plain?.['GryphusChoice'])).toContain('of 2 suitable sites: rank 0, expected wait 0 s, cost 0.5');
    const [ranked] = await ended(await agent.submit(description('echo done', `${mine}\nrank = TARGET.Cost`)));
    expect(ranked).toMatchObject({ GridResource: 'batch fork dear' });
    expect(agent.read('log')).toContain('GridResource: batch fork dear');

    const table = await agent.ok('status', '--sites');
    expect(table).toMatch(/^Name +OpSys +Arch +Batch +State +Cpus +Free/);
    expect(table).toMatch(/^dear +LINUX +\S+ +fork +up +3 +3 /m);
    const free = await agent.ok(
      'status',
      '--sites',
      '--constraint',
      'Cost > 0',
      '-af',
      'Name',
      'TotalCpus',
      'ValidUntil > time()',
    );
    expect(free).toBe('cheap 1 true\ndear 3 true\n');
    const json = JSON.parse(await agent.ok('status', '--sites', '--json')) as Record<string, unknown>[];
    expect(json.map((ad) => ad['Name'])).toEqual(['local', 'cheap', 'dear']);
    expect(json[1]).toMatchObject({ MyType: 'Site', Batch: 'fork', Connection: 'up', RecentFailures: 0 });
  });

  it('stays where nothing suits it, and why says which clause turned away which sites', async () => {
    const wanted = 'requirements = TARGET.Name != "local" && TARGET.TotalCpus >= 64';
    const cluster = await agent.submit(description('true', wanted));
    const why = await until('capacityPolls', async () => {
      const said = await agent.ok('why', String(cluster));
      return said.includes('None of 3 sites') && said.includes('alone') ? said : undefined;
    });
    expect(why).toContain('TARGET.TotalCpus >= 64\n');
    expect(why).toContain('rejects 3, 2 of them by this alone');
    expect(why).toContain("Rejected by the job's Requirements: local, cheap, dear.");
    await agent.ok('rm', String(cluster));
  });

  it('is taken back from a site where it waited too long, and runs once, elsewhere', async () => {
    const blocker = await agent.submit(
      description('sleep 300').replace('universe = grid', 'universe = grid\ngrid_resource = batch fork cheap'),
    );
    await until('the blocker', async () => ((await agent.ads(blocker))[0]?.['JobStatus'] === 2 ? true : undefined));
    const ran = agent.file('ran', '');
    const more = 'requirements = TARGET.Name != "local"\nrank = -TARGET.Cost\n+GryphusMaxWait = 3';
    const cluster = await agent.submit(description(`echo ran >>'${ran}'`, more));
    const [ad] = await ended(cluster);
    expect(ad).toMatchObject({ GridResource: 'batch fork dear', GryphusTakenBackFrom: 'cheap', NumJobStarts: 1 });
    expect(agent.read('ran')).toBe('ran\n');
    await agent.ok('rm', String(blocker));
  });

  it('with want_flood is queued at several sites, runs once where it starts first, and is withdrawn from the others', async () => {
    const blocker = await agent.submit(
      description('sleep 300').replace('universe = grid', 'universe = grid\ngrid_resource = batch fork cheap'),
    );
    await until('the blocker', async () => ((await agent.ads(blocker))[0]?.['JobStatus'] === 2 ? true : undefined));
    const ran = agent.file('ran', '');
    const flooded = 'want_flood = true\nrequirements = TARGET.Name != "local"';
    // A second blocking job, so that the job waits at both sites and `why` can be asked.
    const hold = agent.file('hold', '');
    const filler = await agent.submit(
      description(`while [ -e '${hold}' ]; do sleep 0.1; done`, '', 3)
        .replace('universe = grid', 'universe = grid\ngrid_resource = batch fork dear')
        .replace('output = out', 'output = filler'),
    );
    await until('the fillers', async () => (await agent.ads(filler)).every((ad) => ad['JobStatus'] === 2) || undefined);
    const cluster = await agent.submit(description(`echo ran >>'${ran}'; echo out`, flooded));
    const why = await until('two candidates that wait', async () => {
      const said = await agent.ok('why', String(cluster));
      return said.split('it waits in the queue there').length === 3 ? said : undefined;
    });
    expect(why).toMatch(/It is queued at 2 sites, and runs where it can start first: (cheap, dear|dear, cheap)\./);
    expect(attemptsAt('cheap').some((key) => key.includes(`.${cluster}.`))).toBe(true);
    expect(await agent.ok('site', 'audit', 'cheap')).not.toContain(`.${cluster}.0.`);
    rmSync(hold);
    const [ad] = await ended(cluster);
    expect(ad).toMatchObject({ GridResource: 'batch fork dear', NumJobStarts: 1, ExitCode: 0 });
    expect(ad?.['GryphusChoice']).toContain('the first of 2 sites with free capacity');
    expect(agent.read('ran')).toBe('ran\n');
    expect(agent.read('out.0')).toBe('out\n');
    await until(
      'the withdrawal at the other',
      () => attemptsAt('cheap').every((key) => !key.includes(`.${cluster}.`)) || undefined,
    );
    await agent.ok('rm', String(blocker));
  });

  it('with want_flood for one site alone is refused with a sentence', async () => {
    agent.file('job.sub', description('true', 'want_flood = true\ngrid_resource = batch fork dear'));
    const { code, stderr } = await agent.run(['submit', 'job.sub']);
    expect(code).not.toBe(0);
    expect(stderr).toContain('want_flood = true: the job is for one site, and cannot be queued at several.');
  });
});

/** The attempts of which a site still holds anything. */
function attemptsAt(site: string): string[] {
  const root = join(agent.dir, site, site);
  return existsSync(root) ? readdirSync(root).flatMap((id) => readdirSync(join(root, id, 'jobs'))) : [];
}
