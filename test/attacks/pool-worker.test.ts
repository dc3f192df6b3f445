import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent, until } from '../agent/agent.ts';
import { given, HostileWorker, type HostileOptions, pilotToken } from './hostile-worker.ts';

const one = async (agent: TestAgent, cluster: number) => (await agent.ads(cluster))[0] ?? {};
const held = (agent: TestAgent, cluster: number) =>
  until('it to be held', async () => {
    const ad = await one(agent, cluster);
    return ad['JobStatus'] === 5 ? String(ad['HoldReason']) : undefined;
  });

describe('a hostile worker beside an honest one', () => {
  const agent = new TestAgent();
  const workers: HostileWorker[] = [];

  beforeAll(async () => {
    agent.config('[pool]\ncpus = 2\n');
    await agent.ok('up');
  }, 60_000);
  afterAll(async () => {
    for (const worker of workers) worker.close();
    await agent.end();
  });
  const hostile = (options: HostileOptions) => {
    const worker = new HostileWorker(agent, options);
    workers.push(worker);
    return worker;
  };
  const slots = async () =>
    JSON.parse((await agent.ok('status', '--pool', '--json')) || '[]') as Record<string, unknown>[];

  it('is not taken for it: what runs there is not read, and not ended', async () => {
    agent.file('secret.dat', 'of nobody else');
    agent.file('run.sh', '#!/bin/sh\ncat secret.dat\nuntil [ -e go ]; do sleep 0.1; done\necho true\n', 0o755);
    const cluster = await agent.submit(
      'executable = run.sh\ntransfer_input_files = secret.dat\nshould_transfer_files = YES\noutput = out\nqueue\n',
    );
    await until('it to run', async () => (await one(agent, cluster))['JobStatus'] === 2 || undefined);
    const slot = (await slots()).find((ad) => ad['GryphusKey'] !== undefined) ?? {};
    const key = String(slot['GryphusKey']) as `${string}.${number}.${number}.${number}`;
    const instance = String(slot['GryphusWorker']);
    const worker = hostile({ instance, held: [{ key, is: 'running', startedAt: 1e9 }] });
    await until('it to come', () => worker.up || worker.denied || undefined);
    const sha256 = '0'.repeat(64);
    const read = worker.ask({ what: 'blob', key, sha256, offset: 0, bytes: 1000 });
    await expect(read).rejects.toThrow(/was not granted to this worker/);
    worker.end({ key }, { inline: { stdout: 7, stderr: 0 } }, { stdoutBytes: 7 }, Buffer.from('forged\n'));
    // The honest worker is heard anyway.
    expect((await slots()).filter((ad) => ad['GryphusKey'] === key)).toHaveLength(1);
    expect(await one(agent, cluster)).toMatchObject({ JobStatus: 2 });
    const sandbox = join(agent.home, 'state/pool/worker/jobs', key, 'work');
    agent.file('go', '');
    expect(existsSync(sandbox)).toBe(true);
    await agent.ok('vacate', String(cluster));
    await agent.ok('rm', String(cluster));
    worker.close();
  }, 90_000);

  it('is one worker, whatever number it would be, and brings no more than it was sent out with', async () => {
    const token = pilotToken(agent, { cpus: 3 });
    const first = hostile({ token, instance: 'swarm-0', cpus: 1000 });
    await until('the first to be let in', () => first.up || undefined);
    const others = Array.from({ length: 20 }, (_, i) => hostile({ token, instance: `swarm-${i + 1}`, cpus: 1000 }));
    for (const other of others) await until('it to be turned away', () => other.denied);
    expect(others[0]?.denied).toBe('another worker has already used its token');
    expect((await slots()).filter((ad) => ad['GryphusSite'] === 'siteA')).toMatchObject([{ Cpus: 3 }]);
    // It belongs to the site that its token was issued for, even if it claims another later.
    first.say({ t: 'ad', ad: { GryphusSite: '"local"', GryphusPilot: '"another"' } });
    first.say({ t: 'ad', ad: { Seen: 'true' } });
    const slot = await until('that to be heard', async () => (await slots()).find((ad) => ad['Seen'] === true));
    expect(slot).toMatchObject({ GryphusSite: 'siteA', GryphusPilot: token.id });
    // This also holds for a central manager that knows it only from disk.
    first.close();
    await agent.ok('down');
    await agent.ok('up');
    const again = hostile({ token, instance: 'swarm-7' });
    expect(await until('it to be turned away', () => again.denied, 30_000)).toBe(
      'another worker has already used its token',
    );
    const true1 = hostile({ token, instance: 'swarm-0' });
    await until('the first to be let in', () => true1.up || undefined);
    true1.close();
  }, 90_000);
});

describe('a hostile worker that jobs are given to', () => {
  const agent = new TestAgent();
  let worker: HostileWorker | undefined;

  beforeAll(async () => {
    agent.config('[pool]\nlocal_worker = false\n[gridmanager]\nretry_min = "1s"\nretry_max = "1s"\n');
    await agent.ok('up');
  }, 60_000);
  afterAll(async () => {
    worker?.close();
    await agent.end();
  });
  const hostile = (options: HostileOptions) => {
    worker?.close();
    worker = new HostileWorker(agent, options);
    return worker;
  };
  const submit = (more = '') =>
    agent.submit(
      `executable = /bin/sh\narguments = "-c 'true'"\nshould_transfer_files = YES\n${more}output = out\nqueue\n`,
    );
  const places = () => readdirSync(agent.work, { recursive: true, encoding: 'utf8' }).sort();

  it('places what the job asked for, and nothing else; the rest is named', async () => {
    agent.file('in.dat', 'in');
    await agent.ok('rm', String(await submit()));
    const before = places();
    const files = ['result', '.bash_aliases', '../../evil', '/tmp/evil', 'in.dat', 'sub/result', '_condor_stdout'];
    const listed = files.map((name) => ({ name, bytes: 3, executable: true }));
    const options: HostileOptions = {
      onStart: (to, start) => to.end(start, { files: listed }),
      onAsk: (ask) => (ask.what === 'files' ? { files: listed } : { bytes: Buffer.from('abc') }),
    };
    hostile(options);
    const named = await submit('transfer_input_files = in.dat\ntransfer_output_files = result\n');
    expect(await held(agent, named)).toMatch(/the site offers '\.bash_aliases', which was not requested/);
    expect(places().filter((name) => !before.includes(name))).toEqual(['out', 'result']);
    expect(agent.read('out')).toBe('');
    await agent.ok('rm', String(named));

    const fresh = await submit('transfer_input_files = in.dat\n');
    expect(await held(agent, fresh)).toMatch(/the site offers '\.\.\/\.\.\/evil', which was not requested/);
    // A job that names no output asks for every new file at the top of its directory.
    expect(places().filter((name) => !before.includes(name))).toEqual(['.bash_aliases', 'out', 'result']);
    expect(agent.read('in.dat')).toBe('in');
    await agent.ok('rm', String(fresh));
  }, 90_000);

  it('makes nothing set-user-ID: such an answer is no message', async () => {
    const files = [{ name: 'result', bytes: 3, executable: true, mode: 0o4755 }];
    const bad = hostile({ onStart: (to, start) => to.end(start, { files }) });
    const cluster = await submit('transfer_output_files = result\n');
    await given(bad);
    await until('its connection to end', () => bad.downs.length > 0 || undefined);
    await until('it to be said', () => agent.log('pool.log').includes('files.0.mode') || undefined);
    bad.close();
    await agent.ok('rm', '-forcex', String(cluster));
    const raised = readdirSync(agent.work).filter((name) => (lstatSync(join(agent.work, name)).mode & 0o7000) !== 0);
    expect(raised).toEqual([]);
  }, 90_000);

  it('gives no more of a file than it said, nor less, and not for ever', async () => {
    const endless = Buffer.alloc(1 << 20, 'x');
    const clusters = new Map<string, number>();
    hostile({
      onStart: (to, start) => to.end(start),
      onAsk: (ask) => {
        if (ask.what === 'files') return { files: [{ name: 'result', bytes: 4, executable: false }] };
        const more = 'key' in ask && ask.key.includes(`.${clusters.get('more')}.`);
        return { bytes: more ? endless : Buffer.alloc(0) };
      },
    });
    for (const what of ['more', 'less'])
      clusters.set(what, await submit(`hold = true\ntransfer_output_files = result\n`));
    await agent.ok('release', ...[...clusters.values()].map(String));
    for (const [what, cluster] of clusters) {
      expect(await held(agent, cluster)).toMatch(
        new RegExp(`sent (${what} of work/|a different ')result'? than it announced`),
      );
      await agent.ok('rm', String(cluster));
    }
    const spool = join(agent.home, 'state/spool');
    const found = readdirSync(spool, { recursive: true, encoding: 'utf8' }).map((name) => join(spool, name));
    expect(Math.max(0, ...found.map((path) => lstatSync(path).size))).toBeLessThan(1 << 20);
  }, 200_000);

  it('is not asked for the rest of a large file when its job is gone', async () => {
    let asked = 0;
    const huge = hostile({
      onStart: (to, start) => to.end(start),
      onAsk: (ask) => {
        asked += 1;
        const files = [{ name: 'result', bytes: 1e15, executable: false }];
        return ask.what === 'files' ? { files } : { bytes: Buffer.alloc(1000) };
      },
    });
    const cluster = await submit('transfer_output_files = result\n');
    await until('it to be asked', () => asked > 10 || undefined);
    await agent.ok('rm', String(cluster));
    await until('the questions to end', async () => {
      const before = asked;
      await new Promise((resume) => setTimeout(resume, 500));
      return asked === before || undefined;
    });
    expect(huge.up).toBe(true);
  }, 90_000);

  it('puts no line of its own into what is shown, and no time that cannot be', async () => {
    const message = 'bad\n005 (001.000.000) 2026-01-01 00:00:00 Job terminated.\n\u001b[2J';
    const ending = { how: { kind: 'by-site', cause: 'out-of-memory', message } };
    hostile({ onStart: (to, start) => to.end(start, {}, ending) });
    const cluster = await submit('log = job.log\n');
    expect(await held(agent, cluster)).toMatch(/^[^\n\u001b]*bad 005 [^\n\u001b]*$/);
    expect(await agent.ok('q', String(cluster), '-af', 'HoldReason')).toMatch(/^[^\n]*\n?$/);
    expect(readFileSync(join(agent.work, 'job.log'), 'utf8')).not.toMatch(/^005/m);
    await agent.ok('rm', String(cluster));

    const usage = { userCpuSeconds: 1e300, systemCpuSeconds: 0 };
    const never = hostile({ onStart: (to, start) => to.end(start, {}, { usage }) });
    const timed = await submit('log = timed.log\n');
    await given(never);
    await until('its connection to end', () => never.downs.length > 0 || undefined);
    never.close();
    await agent.ok('rm', '-forcex', String(timed));
    expect(agent.read('timed.log')).not.toMatch(/e\+/);
  }, 90_000);

  it('has no ad that others could not bear', async () => {
    const large = hostile({});
    await until('it to be let in', () => large.up || undefined);
    large.say({ t: 'ad', ad: { Long: `"${'x'.repeat(30_000_000)}"` } });
    await until('its connection to end', () => large.downs.length > 0 || undefined, 20_000);
    await until('it to be back', () => large.up || undefined);
    // The result is the same if it is done little by little.
    for (let i = 0; i < 300 && large.downs.length < 2; i++) {
      large.say({ t: 'ad', ad: { [`Long${i}`]: `"${'x'.repeat(1000)}"` } });
      await new Promise((resume) => setTimeout(resume, 5));
    }
    await until('its connection to end', () => large.downs.length > 1 || undefined, 20_000);
    expect((await agent.ok('status', '--pool', '--json')).length).toBeLessThan(100_000);
  }, 90_000);
});
