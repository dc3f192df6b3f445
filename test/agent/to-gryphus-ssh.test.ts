import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Sshd, startSshd } from '../sites/sshd.ts';
import { CLI, TestAgent, until } from './agent.ts';

describe('jobs that one Gryphus gives to another, over ssh', () => {
  let agent: TestAgent;
  let other: TestAgent;
  let sshd: Sshd;

  beforeAll(async () => {
    sshd = await startSshd();
    other = new TestAgent();
    const bin = join(other.dir, 'bin');
    mkdirSync(bin);
    writeFileSync(join(bin, 'gryphus'), `#!/bin/sh\nexec '${process.execPath}' '${CLI}' "$@"\n`, { mode: 0o755 });
    other.config('[pool]\ncpus = 8\n[scheduler]\nperiodic_interval = "1s"\n');
    await other.ok('up');
    agent = new TestAgent({ HOME: sshd.clientHome });
    const prelude = `export GRYPHUS_HOME=${other.home} PATH=${bin}:$PATH`;
    agent.site('other', {
      url: sshd.url,
      batch: 'gryphus',
      prelude,
      more: '[limits]\npoll_min = "1s"\npoll_max = "3s"\n',
    });
    await agent.ok('up');
  }, 150_000);
  afterAll(async () => {
    await agent.end();
    await other.end();
    await sshd.stop();
  });

  const submit = (lines: string) =>
    agent.submit(`universe = grid\ngrid_resource = batch gryphus other\nexecutable = /bin/sh\n${lines}`);

  it('run there once, and come home; there they are jobs like any', async () => {
    const ledger = join(agent.work, 'ledger');
    agent.file('job.sh', `echo "$1" >>'${ledger}'; echo "out $1 $2"; exit 3\n`);
    const cluster = await submit(
      `arguments = "job.sh $(ProcId) 'a ""b"" c'"\ntransfer_input_files = job.sh\noutput = o.$(ProcId)\nqueue 4\n`,
    );
    await agent.ok('wait', '--no-outcome', '--timeout', '300', String(cluster));
    expect(agent.read('ledger').trim().split('\n').sort()).toEqual(['0', '1', '2', '3']);
    expect(agent.read('o.2')).toBe('out 2 a "b" c\n');
    expect((await agent.ads(cluster)).map((ad) => ad['ExitCode'])).toEqual([3, 3, 3, 3]);
    const there = (await other.ok('history', '-af', 'GryphusKey')).trim().split('\n');
    expect(new Set(there).size).toBe(4);
    expect(there[0]).toMatch(/^gryphus\..*\.1$/);
  }, 400_000);

  it('are distinguished by whether the other site ended them, or its user', async () => {
    const late = await submit('arguments = "-c \'sleep 300\'"\nbatch_runtime = 2\nqueue\n');
    const gone = await submit('arguments = "-c \'sleep 300\'"\nqueue\n');
    const state = async (cluster: number) => (await agent.ads(cluster))[0]?.['GryphusState'];
    await until('it to run', async () => (await state(gone)) === 'running' || undefined, 150_000);
    await other.ok('rm', '--constraint', `regexp("[.]${gone}[.]0[.]", GryphusKey)`);
    const held = (cluster: number) =>
      until('it to be held', async () => (await agent.ads(cluster))[0]?.['HoldReason'] as string | undefined, 150_000);
    expect(await held(gone)).toContain('It was cancelled at the site, not by us');
    expect(await held(late)).toContain('The site ended it at its time limit');
    await agent.ok('rm', String(late), String(gone));
    await agent.ok('wait', '--no-outcome', '--timeout', '200', String(late), String(gone));
  }, 400_000);
});
