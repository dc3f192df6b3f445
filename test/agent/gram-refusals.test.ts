import { appendFileSync, cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { saveProxy } from '../../src/credentials/store.ts';
import { type FrontDoor, type Manner, openFrontDoor } from '../gram/front-door.ts';
import { type Grid, proxyFor, seconds, startGrid } from '../gram/kit.ts';
import { missingPrograms } from '../sites/gatekeeper.ts';
import { type GridCa, makeGridCa, type Person } from '../sites/grid-ca.ts';
import { SLOW } from '../slow.ts';
import { TestAgent, until } from './agent.ts';

const MISSING = missingPrograms();
let grid: Grid;
let other: GridCa;
let door: FrontDoor;
let agent: TestAgent;

beforeAll(async () => {
  if (MISSING.length > 0) return;
  grid = await startGrid();
  other = makeGridCa({ name: 'Another CA' });
  door = await openFrontDoor(grid.gate, 'good');
  // We trust both authorities; the gatekeeper knows one.
  const ours = join(grid.dir, 'certificates');
  for (const ca of [grid.ca, other]) cpSync(ca.trust, ours, { recursive: true });
  agent = new TestAgent({ X509_CERT_DIR: ours, X509_USER_PROXY: grid.proxyFile });
  agent.config('[gridmanager]\nretry_max = "1s"\n');
  await agent.ok('up');
}, 60_000);
afterAll(async () => {
  await agent?.end();
  door?.close();
  other?.stop();
  await grid?.stop();
}, 60_000);

const proxyFile = (name: string) => join(grid.dir, `${name}.pem`);
const mapfile = () => join(grid.gate.dir, 'grid-mapfile');
const submit = (more = '', service = 'jobmanager-fork', address = grid.gate.address) =>
  agent.submit(
    [
      'universe = grid',
      `grid_resource = gt2 ${address}/${service}`,
      'executable = /bin/echo',
      'transfer_executable = false',
      'arguments = here',
      'output = out.$(Cluster)',
      'log = refusals.log',
      more,
      'queue',
    ].join('\n'),
  );
const one = async (cluster: number) => (await agent.ads(cluster))[0] ?? {};
/** The output of `gryphus why`. */
const why = (cluster: number) => agent.ok('why', String(cluster));

async function hasRun(...clusters: number[]): Promise<void> {
  await agent.ok('wait', '--no-outcome', '--timeout', '100', ...clusters.map(String));
  for (const cluster of clusters) {
    expect(await one(cluster)).toMatchObject({ JobStatus: 4, ExitCode: 0, NumJobStarts: 1 });
    expect(agent.read(`out.${cluster}`)).toBe('here\n');
  }
}

describe.skipIf(!SLOW || MISSING.length > 0)('a job that a gatekeeper refuses', () => {
  it('is held with one sentence, and runs when that is fixed and it is released', async () => {
    const eve = grid.ca.person('Eve Other');
    const far = other.person('Far Away');
    const save = async (name: string, person: Person, more: Parameters<typeof proxyFor>[1] = {}) =>
      saveProxy(proxyFile(name), await proxyFor(person, more));
    await save('eve', eve);
    await save('far', far);
    await save('limited', grid.jane, { rights: 'limited' });
    appendFileSync(mapfile(), `"${far.dn}" ${readFileSync(mapfile(), 'utf8').trim().split(' ').at(-1)}\n`);
    const refused: readonly (readonly [cluster: number, words: RegExp, remedy: () => Promise<unknown> | void])[] = [
      [
        await submit(`x509userproxy = ${proxyFile('eve')}`),
        /refuses the log-in: it does not know this identity/,
        () => writeFileSync(mapfile(), readFileSync(mapfile(), 'utf8').replace(/^(.*) (\S+)\n/, `$&"${eve.dn}" $2\n`)),
      ],
      [
        await submit(`x509userproxy = ${proxyFile('limited')}`),
        /or the proxy is a limited one/,
        () => save('limited', grid.jane),
      ],
      [
        await submit(`x509userproxy = ${proxyFile('far')}`),
        /does not know the authority of our certificate/,
        () => cpSync(other.trust, grid.ca.trust, { recursive: true }),
      ],
      [
        await submit('', 'jobmanager-late'),
        /has no service jobmanager-late/,
        () => {
          const services = join(grid.gate.dir, 'services');
          cpSync(join(services, 'jobmanager-fork'), join(services, 'jobmanager-late'));
        },
      ],
      [
        await submit('globus_rsl = (nonsense'),
        /RSL string could not be parsed/,
        () => agent.ok('edit', '--constraint', 'GlobusRSL =!= undefined', 'GlobusRSL=""'),
      ],
      [
        await submit('globus_rsl = (no_such_word=1)'),
        /one of the RSL parameters is not supported/,
        () => agent.ok('edit', '--constraint', 'GlobusRSL =!= undefined', 'GlobusRSL=""'),
      ],
    ];
    for (const [cluster, words] of refused) {
      await until(
        `job ${cluster} to be held`,
        async () => (await one(cluster))['JobStatus'] === 5 || undefined,
        100_000,
      );
      expect((await one(cluster))['HoldReason']).toMatch(words);
      expect(await why(cluster)).toMatch(words);
    }
    const log = agent.read('refusals.log');
    for (const [cluster, words] of refused) {
      const held = new RegExp(`^012 \\(0*${cluster}\\.[^]*?^\\.\\.\\.$`, 'm').exec(log)?.[0] ?? '';
      expect(held).toMatch(words);
    }
    for (const [, , remedy] of refused) await remedy();
    const clusters = refused.map(([cluster]) => cluster);
    await agent.ok('release', ...clusters.map(String));
    await hasRun(...clusters);
  }, 300_000);

  it('is not taken with a proxy that ended', async () => {
    saveProxy(proxyFile('ended'), await proxyFor(grid.jane, { now: seconds() - 240, lifetime: 180 }));
    agent.file(
      'ended.sub',
      `universe = grid
grid_resource = gt2 ${grid.gate.address}/jobmanager-fork
executable = /bin/true
x509userproxy = ${proxyFile('ended')}
queue
`,
    );
    const { code, stderr } = await agent.run(['submit', 'ended.sub']);
    expect([code === 0, stderr]).toEqual([false, expect.stringMatching(/ended\.pem.*(expired|ended)/)]);
  });

  it('waits while the gatekeeper has no backoff, is told why, and runs when it has some', async () => {
    const backoff: readonly (readonly [Manner, RegExp])[] = [
      ['leaves', /cannot be reached/],
      ['half', /closed the connection in the middle/],
      ['no TLS', /does not speak the GRAM protocol/],
      ['nothing', /closed the connection in the middle/],
      ['another status', /answers with the HTTP status 500/],
      ['garbage', /does not speak the GRAM protocol/],
      ['stalls', /did not answer within 60 s/],
      ['leaves in TLS', /cannot be reached/],
    ];
    door.manner = 'leaves';
    const cluster = await submit('', 'jobmanager-fork', door.address);
    for (const [manner, words] of backoff) {
      door.manner = manner;
      await until(`why it waits: ${words.source}`, async () => words.test(await why(cluster)) || undefined, 100_000);
      expect((await one(cluster))['JobStatus']).toBe(1);
    }
    door.manner = 'good';
    await hasRun(cluster);
  }, 300_000);

  it('waits while the gatekeeper is one whose authority we do not know', async () => {
    const third = makeGridCa({ name: 'A third CA' });
    const stranger = await openFrontDoor({ host: third.host(), port: grid.gate.port }, 'half');
    const cluster = await submit('', 'jobmanager-fork', stranger.address);
    await until('the reason', async () => /is not trusted: /.test(await why(cluster)) || undefined);
    expect((await one(cluster))['JobStatus']).toBe(1);
    // Nothing of ours was shown to it.
    expect(stranger.taken).toEqual([]);
    await agent.ok('rm', String(cluster));
    stranger.close();
    third.stop();
  });

  it.each(['no contact', 'no URL', 'half'] as const)(
    'and one whose request is answered with %s waits too',
    async (manner) => {
      // The gatekeeper is reachable, but what it says about the job is unintelligible.
      const already = await submit('', 'jobmanager-fork', door.address);
      await hasRun(already);
      door.manner = manner;
      const before = door.visits;
      const cluster = await submit('', 'jobmanager-fork', door.address);
      await until('two tries', () => door.visits > before + 1 || undefined);
      expect((await one(cluster))['JobStatus']).toBe(1);
      expect(await why(cluster)).toMatch(/returned no contact for it|closed the connection in the middle/);
      door.manner = 'good';
      await hasRun(cluster);
    },
    120_000,
  );
});
