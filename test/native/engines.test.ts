import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { criuPlace, needCriu } from '../../scripts/criu.mjs';
import { readImageHeader } from '../../src/staging/image.ts';
import { parseUserLog } from '../../src/user-log/text.ts';
import { TestAgent, until } from '../agent/agent.ts';
import { killMatching } from '../agent/kill.ts';
import { SLOW } from '../slow.ts';
import { HELPER } from './mover.ts';

/** A python in a pipe to bash, both of which count and do not know that they are moved. */
const TREE = `#!/bin/bash
echo start >>"$1"
python3 -uc "
import os, time
n = 0
while not os.path.exists('$1.over'):
    n += 1
    print(n, flush=True)
    time.sleep(0.02)
" | while read -r n; do echo "line $n"; echo "$n" >state; echo "$n" >"$1.at"; done
echo "ended at $(cat state)"
cp state result
exit 3
`;

/** CRIU, which is killed in the middle of a dump if the file `crash` says so. */
const killable = (crash: string) => `#!/bin/sh
[ "$1" = dump ] && [ "$(cat '${crash}' 2>/dev/null)" = criu ] || exec '${criuPlace()}/criu' "$@"
for word; do [ "$last" = -D ] && dir=$word; last=$word; done
'${criuPlace()}/criu' "$@" &
until [ -e "$dir/core-300.img" ]; do sleep 0.001; done
kill -9 $!
rm '${crash}'
kill -9 $$
`;

const isRoot = process.getuid?.() === 0;

describe.skipIf(!existsSync(HELPER) || !isRoot || !needCriu())('checkpoint_engine = criu', () => {
  const agent = new TestAgent();
  const crash = join(agent.dir, 'crash');
  const programs = join(agent.dir, 'bin');
  beforeAll(async () => {
    agent.config('[pool]\ncpus = 2\ncheckpoint_engines = ["gryphus", "criu"]\n[gridmanager]\nretry_max = "1s"\n');
    mkdirSync(programs);
    writeFileSync(join(programs, 'criu'), killable(crash));
    chmodSync(join(programs, 'criu'), 0o755);
    agent.env['PATH'] = `${programs}:${process.env['PATH'] ?? ''}`;
    agent.env['GRYPHUS_CRASH_FILE'] = crash;
    agent.file('tree.sh', TREE, 0o755);
    await agent.ok('up');
  }, 60_000);
  afterAll(async () => {
    killMatching('worker.mjs', agent);
    await agent.end();
  });

  async function tree(name: string) {
    const ledger = join(agent.work, `${name}.ledger`);
    const cluster = await agent.submit(
      `executable = tree.sh\narguments = ${ledger}\nwant_checkpoint = true\ncheckpoint_engine = criu\noutput = ${name}.out\n` +
        `error = ${name}.err\nlog = ${name}.log\ntransfer_output_files = result\n` +
        `transfer_output_remaps = "result = ${name}.result"\nqueue\n`,
    );
    const at = () => (existsSync(`${ledger}.at`) ? Number(readFileSync(`${ledger}.at`, 'utf8')) : 0);
    const reached = (n: number) =>
      until(`count ${n}`, () => at() >= n || undefined, 30_000).catch((thrown: unknown) => {
        throw new Error(`${agent.read(`${name}.log`)}\n${agent.log('pool-worker.log').slice(-1500)}`, {
          cause: thrown,
        });
      });
    const evictions = () => parseUserLog(agent.read(`${name}.log`)).events.filter((event) => event.type === 'evicted');
    await reached(10);
    return { name, ledger, cluster, at, reached, evictions };
  }
  type Tree = Awaited<ReturnType<typeof tree>>;

  async function vacated({ cluster, evictions }: Tree, times: number): Promise<void> {
    await agent.ok('vacate', String(cluster));
    await until(`eviction ${times}`, () => evictions().length >= times || undefined, 30_000);
  }

  /** It started once, and its output is what an undisturbed run writes. */
  async function finish({ name, ledger, cluster, at }: Tree): Promise<void> {
    agent.file(`${name}.ledger.over`, '');
    await agent.run(['wait', '--no-outcome', '--timeout', '60', String(cluster)]);
    const last = at();
    const lines = Array.from({ length: last }, (_, n) => `line ${n + 1}\n`).join('');
    expect(agent.read(`${name}.out`)).toBe(`${lines}ended at ${last}\n`);
    expect(agent.read(`${name}.err`)).toBe('');
    expect(agent.read(`${name}.result`)).toBe(`${last}\n`);
    expect((await agent.ads(cluster))[0]).toMatchObject({ ExitCode: 3, NumJobCompletions: 1 });
    expect(readFileSync(ledger, 'utf8')).toBe('start\n');
  }

  it('moves a process tree with its pipe, its output exactly once', async () => {
    const job = await tree('moved');
    // The second time it is one that was restored.
    const moves = SLOW ? [1, 2] : [1];
    for (const times of moves) {
      await job.reached(job.at() + 10);
      await vacated(job, times);
    }
    await job.reached(job.at() + 10);
    expect(job.evictions().map((event) => event.checkpointed)).toEqual(moves.map(() => 1));
    const [ad] = await agent.ads(job.cluster);
    expect(String(ad?.['LastCheckpointPlatform'])).toMatch(/^criu-4/);
    expect(String(ad?.['Requirements'])).toContain('stringListIMember("criu",TARGET.CheckpointEngines)');
    await finish(job);
  }, 120_000);

  /** `criu`: itself, while it has the processes in its hands; else what it starts to write the image. */
  it.runIf(SLOW).each(['helper.stopped', 'helper.written', 'helper.named', 'criu'])(
    'goes on from the last whole image when a dump dies at %s',
    async (point) => {
      const job = await tree(`dies-${point}`);
      await vacated(job, 1);
      await job.reached(job.at() + 10);
      writeFileSync(crash, point);
      await agent.ok('vacate', String(job.cluster));
      await until('the crash', () => !existsSync(crash) || undefined, 30_000);
      await until('its second eviction', () => job.evictions().length >= 2 || undefined, 60_000);
      await job.reached(job.at() + 10);
      await finish(job);
    },
    180_000,
  );

  it('is not checkpointed with a file open outside of its directory, and says so', async () => {
    const up = join(agent.work, 'opened');
    agent.file('opens.sh', `#!/bin/sh\nexec 5>'${up}'\nsleep 1000\n`, 0o755);
    const cluster = await agent.submit(
      'executable = opens.sh\nwant_checkpoint = true\ncheckpoint_engine = criu\nlog = opens.log\nqueue\n',
    );
    await until('it to run', () => existsSync(up) || undefined, 30_000);
    await agent.ok('vacate', String(cluster));
    await until('its eviction', () => agent.read('opens.log').includes('Job was evicted') || undefined, 30_000);
    expect(agent.read('opens.log')).toContain(`file descriptor 5 writes to ${up}, outside of its directory`);
    await agent.ok('rm', String(cluster));
  }, 60_000);

  it('is in the header of its images, which no other engine takes', () => {
    const dir = join(agent.dir, 'packed');
    mkdirSync(dir);
    writeFileSync(join(dir, 'out'), 'twelve bytes');
    const image = join(dir, 'image');
    const words = ['pack', dir, image, 'criu', join(dir, 'out'), join(dir, 'none'), 'out'];
    expect(spawnSync(HELPER, words, { encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' });
    expect(readImageHeader(image)).toMatchObject({ engine: 'criu', stdout: 12, stderr: 0, bases: [] });
    expect(spawnSync(HELPER, ['inspect', image], { encoding: 'utf8' }).stderr).toContain('is of version 257');
  });

  it.runIf(SLOW)(
    'is what `why` says of a machine whose owner does not offer it',
    async () => {
      const other = new TestAgent();
      try {
        other.config('[pool]\ncpus = 1\n');
        const cluster = await other.submit(
          'executable = /bin/true\nwant_checkpoint = true\ncheckpoint_engine = criu\nqueue\n',
        );
        const why = () => other.run(['why', String(cluster)]).then(({ stdout }) => stdout.replaceAll(/\s+/g, ' '));
        await until('the reason', async () => (await why()).includes('no checkpoints by criu there') || undefined);
        expect(await why()).toContain('the owner of the machine does not offer it');
      } finally {
        killMatching('worker.mjs', other);
        await other.end();
      }
    },
    120_000,
  );

  it('is an engine that there is', async () => {
    const input = 'executable = /bin/true\nwant_checkpoint = true\ncheckpoint_engine = dmtcp\nqueue\n';
    const { code, stderr } = await agent.run(['submit', '-'], { input });
    expect(code).not.toBe(0);
    expect(stderr).toContain("There is no checkpoint engine 'dmtcp'");
  });
});
