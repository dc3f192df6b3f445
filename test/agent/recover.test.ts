import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { type Sshd, startSshd } from '../sites/sshd.ts';
import { SLOW } from '../slow.ts';
import { TestAgent, until } from './agent.ts';

describe('an agent whose state directory is lost', () => {
  const ends: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const end of ends.splice(0).toReversed()) await end();
  });

  /** An agent with the site `c1`: a server that is reached by ssh. */
  async function agentAt(sshd: Sshd): Promise<TestAgent> {
    const agent = new TestAgent({ HOME: sshd.clientHome });
    ends.push(() => agent.end());
    agent.site('c1', { url: sshd.url, batch: 'fork', more: '[limits]\nrunning = 20\nqueued = 40\n' });
    return agent;
  }

  const job = (agent: TestAgent, name: string, script: string, more: readonly string[] = []) =>
    agent.submit(
      [
        'universe = grid',
        'grid_resource = batch fork c1',
        'executable = /bin/sh',
        'transfer_executable = false',
        `arguments = "-c 'echo begun $(Process) >>${agent.work}/ledger; ${script}'"`,
        `output = ${name}.$(Process).out`,
        `log = ${name}.log`,
        ...more,
      ].join('\n'),
    );
  const ledger = (agent: TestAgent) => agent.read('ledger').trim().split('\n').sort();
  const ads = async (agent: TestAgent, command: 'q' | 'history') =>
    JSON.parse((await agent.ok(command, '--json')) || '[]') as Record<string, unknown>[];

  it('goes on under another one: each job once, its results where they belong, and the former is refused', async () => {
    const sshd = await startSshd();
    ends.push(() => sshd.stop());
    const lost = await agentAt(sshd);
    lost.file('ledger', '');
    // A directory that will be gone, an environment, and an output file of its own.
    const gone = join(lost.dir, 'gone dir');
    mkdirSync(gone);
    const wait = (file: string) => `while [ ! -e ${lost.work}/${file} ]; do sleep 0.1; done`;
    const running = await job(lost, 'running', `${wait('go')}; printenv SAID`, [
      'environment = "SAID=\'so it is\'"',
      'queue 2',
    ]);
    const homeless = await job(lost, 'homeless', `${wait('end')}; echo result; echo ended >>${lost.work}/ledger`, [
      `initialdir = ${gone}`,
      'queue',
    ]);
    await until('all to run', async () => ledger(lost).length === 3 || undefined);
    await until(
      'that to be known',
      async () => (await ads(lost, 'q')).filter((ad) => ad['GryphusState'] === 'running').length === 3 || undefined,
    );
    await lost.ok('down');
    lost.file('end', '');
    await until('its end', () => ledger(lost).includes('ended') || undefined);
    rmSync(gone, { recursive: true });

    const fresh = await agentAt(sshd);
    const dry = await fresh.ok('recover', '--dry-run');
    expect(dry).toMatch(/started there, would be followed/);
    expect(await ads(fresh, 'q')).toEqual([]);
    await fresh.ok('recover', '--into', join(fresh.work, 'recovered'));
    expect((await ads(fresh, 'q')).map((ad) => ad['ClusterId'])).toContain(running);
    lost.file('go', '');
    await fresh.ok('wait', '--no-outcome', String(running), '--timeout', '60');
    expect(lost.read('running.0.out')).toBe('so it is\n');
    expect(lost.read('running.1.out')).toBe('so it is\n');
    expect(ledger(lost)).toEqual(['begun 0', 'begun 0', 'begun 1', 'ended']);
    await fresh.ok('wait', '--no-outcome', String(homeless), '--timeout', '60');
    expect(readFileSync(join(fresh.work, `recovered/${homeless}.0/homeless.0.out`), 'utf8')).toBe('result\n');
    // Nothing is left at the site, and no number is given twice.
    expect(await fresh.ok('site', 'audit', 'c1')).toBe('c1 and the queue agree.\n');
    expect(await job(fresh, 'next', 'true', ['queue'])).toBeGreaterThan(homeless);

    if (!SLOW) return;
    // The former one was not dead.
    const other = await job(lost, 'other', 'echo other', ['queue']);
    const refused = await until('it to be refused', async () => {
      const status = await lost.ok('status');
      return status.includes('on another machine') ? status : undefined;
    });
    expect(refused).toContain('gryphus recover');
    expect(existsSync(join(lost.work, 'other.0.out'))).toBe(false);
    // And takes the site back.
    await lost.ok('recover');
    await lost.ok('wait', '--no-outcome', String(other), '--timeout', '60');
    expect(lost.read('other.0.out')).toBe('other\n');
    const after = await job(fresh, 'after', 'true', ['queue']);
    await until('the new one to be refused', async () =>
      (await fresh.ok('status')).includes('on another machine') ? true : undefined,
    );
    expect((await ads(fresh, 'q')).map((ad) => ad['ClusterId'])).toEqual([after]);
  }, 240_000);
});
