import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { accountOf } from '../../src/pool/host/accounts.ts';
import { TestAgent, until } from '../agent/agent.ts';

const isRoot = process.getuid?.() === 0;
if (!isRoot) process.stderr.write('Tests of jobs under other accounts are left out: they need root.\n');

describe.runIf(isRoot)("a worker of root's agent", () => {
  const agent = new TestAgent();
  const secret = join(agent.dir, 'secret');

  beforeAll(async () => {
    agent.config('[pool]\ncpus = 2\nrun_as = "nobody"\n');
    writeFileSync(secret, 'for root only\n', { mode: 0o600 });
    await agent.ok('up');
  }, 60_000);
  afterAll(() => agent.end());

  const script = (name: string, text: string) => agent.file(name, `#!/bin/sh\n${text}\n`, 0o755);

  const ended = (cluster: number) =>
    until('its end', async () => ((await agent.ads(cluster))[0]?.['JobStatus'] === 4 ? true : undefined));

  it("runs root's jobs as nobody, with files that are nobody's, and brings their results home", async () => {
    script(
      'who.sh',
      [
        'id -un; id -G; pwd; echo $HOME; cat in.txt; cat',
        `cat ${secret} || echo refused`,
        `ln -s ${secret} stolen; ln -s /etc/shadow shadow; echo made >out.txt`,
        'stat -c %U in.txt condor_exec.exe .',
        'ls / >/dev/null && ls .. && echo listed',
        'echo again >>/dev/stdout; touch ../exit && echo forged',
      ].join('\n'),
    );
    agent.file('in.txt', 'input\n', 0o600);
    agent.file('stdin.txt', 'from stdin\n', 0o600);
    const cluster = await agent.submit(
      'executable = who.sh\ninput = stdin.txt\ntransfer_input_files = in.txt\noutput = o\nerror = e\nlog = l\nqueue\n',
    );
    await ended(cluster);
    const lines = agent.read('o').split('\n');
    expect(lines.slice(0, 2)).toEqual(['nobody', String(accountOf('nobody')?.gid)]);
    expect(lines[3]).toBe(lines[2]);
    expect(lines.slice(4)).toEqual(['input', 'from stdin', 'refused', 'nobody', 'nobody', 'nobody', 'again', '']);
    expect(agent.read('e')).toMatch(/secret: Permission denied/);
    expect(agent.read('out.txt')).toBe('made\n');
    expect(['stolen', 'shadow'].filter((name) => existsSync(join(agent.work, name)))).toEqual([]);
    expect((await agent.ads(cluster))[0]).toMatchObject({ ExitCode: 1 });
    expect(existsSync(lines[2] ?? '')).toBe(false);
  }, 60_000);

  it('runs tasks and shells beside jobs as nobody too', async () => {
    expect(await agent.ok('map', 'id -un; pwd', ':::', '1')).toBe(`nobody\n${agent.work}\n`);
    const cluster = await agent.submit(
      'executable = /bin/sleep\narguments = 600\ntransfer_executable = false\nqueue\n',
    );
    await until('it to run', async () => ((await agent.ads(cluster))[0]?.['JobStatus'] === 2 ? true : undefined));
    const { stdout } = await agent.run(['ssh', `${cluster}.0`, '--', 'id -un; touch here && stat -c %U here']);
    expect(stdout).toBe('nobody\nnobody\n');
    await agent.ok('rm', String(cluster));
  }, 60_000);

  it('follows a change of pool.run_as', async () => {
    agent.config('[pool]\ncpus = 2\nrun_as = "root"\n');
    await until('a job of root', async () => {
      const cluster = await agent.submit('executable = /usr/bin/id\narguments = -un\noutput = w\nqueue\n');
      await ended(cluster);
      return agent.read('w') === 'root\n' || undefined;
    });
  }, 60_000);
});
