import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent, until } from '../agent/agent.ts';
import { killMatching, processesOf } from '../agent/kill.ts';

describe('results of a job in the pool', () => {
  let agent: TestAgent;

  beforeAll(async () => {
    agent = new TestAgent();
    agent.config('[pool]\ncpus = 2\n');
    await agent.ok('up');
  });
  afterAll(() => agent.end());

  const bits = (name: string) => (statSync(join(agent.work, name)).mode & 0o7777).toString(8);

  it.each([
    ['all that is new', ''],
    ['those that are named', 'transfer_output_files = secret, shown, fixed, program, raised\n'],
  ])(
    'have the permissions that the job gave them: %s',
    async (_, outputs) => {
      agent.file(
        'modes.sh',
        [
          '#!/bin/sh',
          'for f in secret shown fixed program raised; do echo "$f" >$f; done',
          'chmod 600 secret; chmod 640 shown; chmod 444 fixed; chmod 755 program; chmod 4711 raised',
        ].join('\n'),
        0o755,
      );
      const job = `executable = modes.sh\nshould_transfer_files = YES\n${outputs}log = modes.log\nqueue\n`;
      await agent.ok('wait', '--no-outcome', '--timeout', '60', String(await agent.submit(job)));
      expect(['secret', 'shown', 'fixed', 'program', 'raised'].map(bits)).toEqual(['600', '640', '444', '755', '711']);
    },
    90_000,
  );

  it.each([
    ['all that is new', ''],
    ['a directory that is named', 'transfer_output_files = made\n'],
  ])(
    'come home whatever bytes their names have, as from any other site: %s',
    async (_, outputs) => {
      const where = outputs === '' ? '' : 'made/';
      agent.file(
        'bytes.sh',
        `#!/bin/sh\n${where === '' ? '' : 'mkdir made\n'}printf one >"$(printf '${where}\\377\\376bad')"\nprintf two >'${where}caf\u00e9 *'\n`,
        0o755,
      );
      const cluster = await agent.submit(`executable = bytes.sh\nshould_transfer_files = YES\n${outputs}queue\n`);
      await agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster));
      expect([agent.read(`${where}%FF%FEbad`), agent.read(`${where}caf\u00e9 *`)]).toEqual(['one', 'two']);
    },
    90_000,
  );

  it('are its streams alone: small, empty or large, byte for byte', async () => {
    agent.file(
      'streams.sh',
      `#!/bin/sh\nprintf 'a\\377\\000b' >&2\ncase $1 in small) printf 'x\\001' ;; large) head -c 300000 /dev/zero ;; esac\n`,
      0o755,
    );
    const cluster = await agent.submit(
      'executable = streams.sh\narguments = $(size)\noutput = $(size).out\nerror = $(size).err\nqueue size from (\nempty\nsmall\nlarge\n)\n',
    );
    await agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster));
    const bytes = (name: string) => readFileSync(join(agent.work, name));
    expect(['empty', 'small', 'large'].map((size) => bytes(`${size}.err`).toString('hex'))).toEqual(
      Array.from({ length: 3 }, () => '61ff0062'),
    );
    expect(['empty', 'small'].map((size) => bytes(`${size}.out`).toString('hex'))).toEqual(['', '7801']);
    expect(bytes('large.out')).toEqual(Buffer.alloc(300_000));
    const told = await agent.ok('history', String(cluster), '-af', 'ProcId', 'BytesRecvd');
    expect(told.trim().split('\n').sort()).toEqual(['0 4.0', '1 6.0', '2 300004.0']);
    expect(readdirSync(join(agent.home, 'state/spool')).filter((name) => !name.startsWith('.'))).toEqual([]);
  }, 90_000);

  it('wait where their place cannot be written, and come home without another run', async () => {
    agent.file('once.sh', '#!/bin/sh\necho ran >>ran\necho text\nmv there away\n', 0o755);
    mkdirSync(join(agent.work, 'there'));
    const cluster = await agent.submit('executable = once.sh\noutput = there/out\nqueue\n');
    const held = await until('a hold', async () => {
      const said = await agent.ok('q', String(cluster), '--hold');
      return said.includes('there/out') ? said : undefined;
    });
    expect(held).toContain('its directory does not exist');
    mkdirSync(join(agent.work, 'there'));
    await agent.ok('release', String(cluster));
    await agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster));
    expect([agent.read('there/out'), agent.read('ran')]).toEqual(['text\n', 'ran\n']);
  }, 90_000);

  it('that somebody has deleted at the worker are not waited for: the job is held', async () => {
    agent.file(
      'large.sh',
      '#!/bin/sh\nuntil [ -e "$1" ]; do sleep 0.05; done\nhead -c 3000000 /dev/zero >large\n',
      0o755,
    );
    const go = join(agent.work, 'go');
    const cluster = await agent.submit(
      `executable = large.sh\narguments = ${go}\nshould_transfer_files = YES\ntransfer_output_files = large\nlog = large.log\nqueue\n`,
    );
    await until('it to run', () => agent.read('large.log').includes('001 (') || undefined);
    const [manager = 0] = processesOf('gridmanager/main.js', agent);
    process.kill(manager, 'SIGSTOP');
    agent.file('go', '');
    await until('its end', async () => /0 cores claimed/.test(await agent.ok('status')) || undefined);
    killMatching('worker.mjs', agent);
    rmSync(join(agent.home, 'state/pool/worker/jobs'), { recursive: true });
    process.kill(manager, 'SIGCONT');
    const reason = () => agent.ok('q', '--format', '%s', 'HoldReason', String(cluster));
    await until('it to be held', async () => (await reason()).includes('are not there any more') || undefined, 60_000);
    await agent.ok('rm', String(cluster));
  }, 120_000);
});
