import { spawn } from 'node:child_process';
import { existsSync, readFileSync, readlinkSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLI, TestAgent, until } from './agent.ts';

const HUP = 1n;

let agent: TestAgent;
let bin: string;
let count = 0;
beforeAll(async () => {
  agent = new TestAgent();
  bin = join(agent.dir, 'bin');
  await agent.ok('compat', 'install', bin);
});
afterAll(() => agent.end());

/** A job that ends when its file is made, and a description of it. */
function job(): { readonly go: string; readonly sub: string; readonly script: string } {
  const go = join(agent.work, `go ${++count}`);
  const script = agent.file(`job ${count}.sh`, `#!/bin/sh\nwhile [ ! -e '${go}' ]; do sleep 0.1; done\n`, 0o755);
  const sub = agent.file(`job${count}.sub`, `executable = ${script}\nlog = log.${count}\nqueue\n`);
  return { go, sub, script };
}

/** What a user types, in a process group of its own. */
function typed(words: readonly string[]) {
  const [program = '', ...rest] = words;
  const PATH = [dirname(process.execPath), process.env['PATH']].join(delimiter);
  const child = spawn(program, rest, {
    cwd: agent.work,
    env: { ...agent.env, PATH },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (some) => (said += String(some)));
  const end = new Promise<number | null>((resolve) => child.once('close', resolve));
  const pid = child.pid ?? 0;
  return { pid, end, said: () => said };
}

/** Resolves when the command is a Node that has its own way with a hang-up. */
async function ready(pid: number): Promise<void> {
  await until('Node to catch hang-ups', () => {
    if (readlinkSync(`/proc/${pid}/exe`) !== readlinkSync('/proc/self/exe')) return undefined;
    const caught = /^SigCgt:\t(\w+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return (BigInt(`0x${caught}`) & HUP) === HUP || undefined;
  });
}

const hangUp = (pid: number) => process.kill(-pid, 'SIGHUP');

describe('when the terminal is closed, a command that waits', () => {
  it.each<[string, (of: ReturnType<typeof job>) => readonly string[]]>([
    ['submit --wait', ({ sub }) => ['nohup', CLI, 'submit', '--wait', sub]],
    ['run', ({ script }) => ['nohup', CLI, 'run', '--', script]],
    ["run, with trap '' HUP", ({ script }) => ['sh', '-c', `trap '' HUP; exec "$0" run -- "$1"`, CLI, script]],
    ['sbatch --wait', ({ script }) => ['nohup', join(bin, 'sbatch'), '--wait', script]],
  ])('goes on with nohup: %s', async (_what, words) => {
    const made = job();
    const { pid, end, said } = typed(words(made));
    await ready(pid);
    hangUp(pid);
    // Also later, when it waits.
    await until(
      'the job to run',
      async () => (await agent.ok('q', '--json', '--run')).includes('ClusterId') || undefined,
    );
    hangUp(pid);
    agent.file(made.go.slice(agent.work.length + 1), '');
    expect(await end, said()).toBe(0);
  });

  it.each<[string, (cluster: number, log: string) => readonly string[]]>([
    ['wait', (cluster) => ['nohup', CLI, 'wait', String(cluster)]],
    ['condor_wait', (_, log) => ['nohup', join(bin, 'condor_wait'), log]],
  ])('for a job that runs goes on with nohup: %s', async (_what, words) => {
    const made = job();
    const cluster = await agent.submit(readFileSync(made.sub, 'utf8'));
    const { pid, end, said } = typed(words(cluster, `log.${count}`));
    await ready(pid);
    hangUp(pid);
    await agent.ok('q');
    hangUp(pid);
    agent.file(made.go.slice(agent.work.length + 1), '');
    expect(await end, said()).toBe(0);
  });

  it('ends without nohup, and its job goes on', async () => {
    const made = job();
    const cluster = await agent.submit(readFileSync(made.sub, 'utf8'));
    const { pid, end } = typed([CLI, 'wait', String(cluster)]);
    await ready(pid);
    hangUp(pid);
    expect([129, null]).toContain(await end);
    agent.file(made.go.slice(agent.work.length + 1), '');
    await agent.ok('wait', '--timeout', '60', String(cluster));
  });
});

it('is not handed on to jobs', async () => {
  const script = agent.file('env.sh', '#!/bin/sh\nenv >"$PWD/env.out"\n', 0o755);
  const sub = agent.file('env.sub', `executable = ${script}\ngetenv = true\ntransfer_executable = false\nqueue\n`);
  const { end, said } = typed(['nohup', CLI, 'submit', '--wait', sub]);
  expect(await end, said()).toBe(0);
  expect(existsSync(join(agent.work, 'env.out'))).toBe(true);
  expect(agent.read('env.out')).not.toContain('GRYPHUS_HANG_UP');
});
