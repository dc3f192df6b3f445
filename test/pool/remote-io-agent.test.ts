import { createHash, randomBytes } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent, until } from '../agent/agent.ts';
import { killMatching } from '../agent/kill.ts';
import { REMOTE_IO } from '../native/remote-home.ts';
import { SLOW } from '../slow.ts';

const isRoot = process.getuid?.() === 0;

describe.skipIf(!existsSync(REMOTE_IO))('want_remote_io in the pool', () => {
  const agent = new TestAgent();
  const data = join(agent.dir, 'data');
  beforeAll(async () => {
    mkdirSync(join(data, 'rw'), { recursive: true });
    writeFileSync(join(data, 'table'), 'the table\n');
    // Under another account, nothing below is to be had but from home.
    agent.config(
      `[pool]\ncpus = 2\n${isRoot ? 'run_as = "nobody"\n' : ''}remote_io = ["${data}", "${data}/rw:rw"]\n` +
        '[gridmanager]\nrestart_max = "100ms"\nretry_max = "1s"\n',
    );
    if (isRoot) for (const dir of [agent.work, data]) chmodSync(dir, 0o700);
    await agent.ok('up');
  }, 60_000);
  afterAll(async () => {
    killMatching('worker.mjs', agent);
    await agent.end();
  });

  async function job(name: string, script: string, more = ''): Promise<string> {
    agent.file(`${name}.sh`, `#!/bin/bash\n${script}\n`, 0o755);
    const cluster = await agent.submit(
      `executable = ${name}.sh\nwant_remote_io = true\n${more}output = ${name}.out\nerror = ${name}.err\nlog = ${name}.log\nqueue\n`,
    );
    await agent.run(['wait', '--no-outcome', '--timeout', '90', String(cluster)]);
    return agent.read(`${name}.out`) + agent.read(`${name}.err`);
  }

  it('has the files of the submit directory and of those that the configuration names', async () => {
    agent.file('in.txt', 'one\n');
    agent.file('key.pem', '-----BEGIN PRIVATE KEY-----\nMIIB\n');
    symlinkSync('/etc/shadow', join(agent.work, 'shadow'));
    const said = await job(
      'files',
      `cd $GRYPHUS_SUBMIT_DIR && cat in.txt && pwd
       echo two >>in.txt; mkdir -p made/deep; echo new >made/deep/f; mv made/deep/f made/g; sed -i s/one/ONE/ in.txt; cat in.txt
       cat ${data}/table; echo x >${data}/table; echo y >${data}/rw/y
       cat key.pem shadow ../g/config.toml; readlink /proc/self/fd/0 <in.txt | grep -o /.remote-io/
       (sleep 0.2; echo from a child >>made/g) & wait; cat made/g`,
    );
    expect(said).toContain(`one\n${agent.work}\nONE\ntwo\nthe table\n/.remote-io/\nnew\nfrom a child\n`);
    expect(said.match(/Permission denied/g)).toHaveLength(3);
    expect(said).toContain('Read-only file system');
    expect(agent.read('in.txt')).toBe('ONE\ntwo\n');
    expect(agent.read('made/g')).toBe('new\nfrom a child\n');
    expect(readFileSync(join(data, 'table'), 'utf8')).toBe('the table\n');
    expect(readFileSync(join(data, 'rw/y'), 'utf8')).toBe('y\n');
    expect(existsSync(join(agent.work, '.remote-io'))).toBe(false);
  }, 120_000);

  it('runs the example', async () => {
    const example = join(agent.work, 'example');
    cpSync(resolve(import.meta.dirname, '../../examples/remote-io'), example, { recursive: true });
    if (isRoot) chmodSync(example, 0o700);
    const { stdout } = await agent.run(['submit', '--terse', 'count.sub'], { cwd: example });
    await agent.run(['wait', '--no-outcome', '--timeout', '90', stdout.split('.')[0] ?? '']);
    expect(agent.read('example/counts.csv')).toBe('runs/monday.log,2\nruns/tuesday.log,1\n');
  }, 120_000);

  it('works in its own directory, from which its results come home', async () => {
    const said = await job('own', 'echo result >out.txt; ls -a | grep -c -e out.txt; echo $PWD');
    expect(said).toMatch(/^1\n\/.*\/work\n$/);
    expect(agent.read('out.txt')).toBe('result\n');
  }, 120_000);

  it('has no Chirp without want_io_proxy, and no remote I/O without want_remote_io', async () => {
    const said = await job(
      'none',
      `exec 5<>/dev/tcp/127.0.0.1/$(cut -d' ' -f2 .chirp.config); echo cookie $(cut -d' ' -f3 .chirp.config) >&5; head -1 <&5
       echo get_job_attr Cmd >&5; head -1 <&5`,
    );
    expect(said).toBe('0\n-2\n');
    agent.file(
      'plain.sh',
      `#!/bin/bash\nexec 5<>/dev/tcp/127.0.0.1/$(cut -d' ' -f2 .chirp.config); echo cookie $(cut -d' ' -f3 .chirp.config) >&5; head -1 <&5; echo remote_io x >&5; head -1 <&5; echo "d\${GRYPHUS_SUBMIT_DIR}"`,
      0o755,
    );
    const cluster = await agent.submit(
      'executable = plain.sh\nwant_io_proxy = true\nshould_transfer_files = YES\noutput = plain.out\nqueue\n',
    );
    await agent.run(['wait', '--no-outcome', '--timeout', '60', String(cluster)]);
    expect(agent.read('plain.out')).toBe('0\n-12\nd\n');
  }, 120_000);

  it.each([
    ['want_checkpoint = true', 'want_remote_io and want_checkpoint are incompatible'],
    ['should_transfer_files = NO', 'want_remote_io and should_transfer_files = NO are incompatible'],
    ['universe = container\ncontainer_image = x.sif', 'containers cannot reach files at home'],
  ])('is refused with %s', async (line, message) => {
    agent.file('bad.sub', `executable = /bin/true\nwant_remote_io = true\n${line}\nqueue\n`);
    const { code, stderr } = await agent.run(['submit', 'bad.sub']);
    expect(code).not.toBe(0);
    expect(stderr).toContain(message);
  });

  it('is left to whoever speaks of it in the requirements himself', async () => {
    agent.file(
      'w.sub',
      'executable = /bin/true\ntransfer_executable = false\nrequirements = TARGET.HasRemoteIO =!= true\nwant_remote_io = true\nqueue\n',
    );
    const { stdout } = await agent.run(['submit', '--dry-run', '-', 'w.sub']);
    expect(stdout).not.toContain('&& TARGET.HasRemoteIO');
  }, 60_000);

  it('reads much by a connection of its own, also while the GridManager is killed', async () => {
    const sums = [0, 1, 2, 3].map((i) => {
      const bytes = randomBytes(24 << 20);
      writeFileSync(join(agent.work, `big${i}`), bytes);
      return createHash('sha256').update(bytes).digest('hex');
    });
    agent.file(
      'sums.sh',
      '#!/bin/bash\nfor i in 0 1 2 3; do sha256sum <$GRYPHUS_SUBMIT_DIR/big$i; touch $GRYPHUS_SUBMIT_DIR/at$i; done\n',
      0o755,
    );
    const cluster = await agent.submit(
      'executable = sums.sh\nwant_remote_io = true\noutput = sums.out\nerror = sums.err\nqueue\n',
    );
    const by = join(agent.home, 'state/run');
    await until('a socket for reads', () => readdirSync(by).some((name) => name.startsWith('reads-')) || undefined);
    await until('the first file', () => existsSync(join(agent.work, 'at0')) || undefined);
    killMatching('gridmanager/main.js', agent);
    await agent.run(['wait', '--no-outcome', '--timeout', '90', String(cluster)]);
    expect(agent.read('sums.err')).toBe('');
    expect(agent.read('sums.out').trim().split('\n')).toEqual(sums.map((sum) => `${sum}  -`));
  }, 180_000);

  it('goes on when the worker, the central manager and the GridManager are killed under it, and appends once', async () => {
    const lines = SLOW ? 400 : 80;
    agent.file('ledger', '');
    agent.file(
      'long.sh',
      `#!/bin/bash\nfor n in $(seq 1 ${lines}); do echo $n >>$GRYPHUS_SUBMIT_DIR/ledger; sleep 0.05; done\n`,
      0o755,
    );
    const cluster = await agent.submit(
      'executable = long.sh\nwant_remote_io = true\nerror = long.err\nlog = long.log\nqueue\n',
    );
    const count = () => agent.read('ledger').split('\n').length - 1;
    const beyond = (n: number) => until(`line ${n}`, () => count() > n || undefined, 60_000);
    await beyond(5);
    for (const process of ['worker.mjs', 'central-manager-main.js', 'gridmanager/main.js']) {
      killMatching(process, agent);
      await beyond(count() + 3);
    }
    await agent.run(['wait', '--no-outcome', '--timeout', '120', String(cluster)]);
    const wanted = Array.from({ length: lines }, (_, n) => `${n + 1}\n`).join('');
    expect(agent.read('ledger') + agent.read('long.err')).toBe(wanted);
    expect((await agent.ads(cluster))[0]).toMatchObject({ ExitCode: 0, NumJobStarts: 1 });
  }, 240_000);
});
