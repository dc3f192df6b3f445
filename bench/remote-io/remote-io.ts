import { execFile as execFileWithCallback } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { startTarget } from '../../test/crash/sites.ts';
import { GlideinAgent } from '../../test/glidein/ground.ts';
import { CpuByName } from '../cpu.ts';

const execFile = promisify(execFileWithCallback);

const READ = `
import os, sys, time
began = time.time()
with open(os.environ['GRYPHUS_SUBMIT_DIR'] + '/big', 'rb', buffering=0) as f:
    got = 0
    while True:
        part = f.read(1 << 20)
        if not part: break
        got += len(part)
print('read', got, time.time() - began)
`;
const OPEN = `
import os, sys, time
from concurrent.futures import ThreadPoolExecutor
d = os.environ['GRYPHUS_SUBMIT_DIR']
rounds, files, opens = map(int, sys.argv[1:])
names = [f'{d}/many/f{i}' for i in range(files)]
began = time.time()
with ThreadPoolExecutor(8) as pool: list(pool.map(lambda name: os.close(os.open(name, os.O_RDONLY)), names))
print('brought', files, time.time() - began)
for r in range(rounds):
    began = time.time()
    for i in range(opens): os.close(os.open(names[i % files], os.O_RDONLY))
    print('opened', opens, time.time() - began)
`;

export async function main(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      mb: { type: 'string', default: '1024' },
      files: { type: 'string', default: '10000' },
      opens: { type: 'string', default: '10000' },
      rounds: { type: 'string', default: '3' },
      /** At this machine's own worker. */
      local: { type: 'boolean', default: false },
    },
  });
  const [mb = 0, files = 0, opens = 0, rounds = 1] = [values.mb, values.files, values.opens, values.rounds].map(Number);
  const agent = new GlideinAgent();
  if (!values.local) agent.configure();
  const target = await startTarget('fork, ssh', agent);
  const run = async (program: string, numbers = ''): Promise<void> => {
    const cluster = await agent.submit(
      `executable = /usr/bin/python3\ntransfer_executable = false\narguments = ${program} ${numbers}\ntransfer_input_files = ${program}\n` +
        `want_remote_io = true\nrequest_disk = 10M\noutput = o\nerror = e\nqueue\n`,
    );
    await agent.ok('wait', '--timeout', '1500', String(cluster));
  };
  const said = (word: string) =>
    [...agent.read('o').matchAll(new RegExp(`^${word} \\d+ (.*)$`, 'gm'))].map(([, text]) => Number(text));
  try {
    const { sshd } = target;
    if (!sshd) throw new Error('no sshd');
    const big = join(agent.work, 'big');
    mkdirSync(join(agent.work, 'many'));
    for (let i = 0; i < files; i++) writeFileSync(join(agent.work, 'many', `f${i}`), randomBytes(64));
    agent.file('read.py', READ);
    agent.file('open.py', OPEN);
    await agent.ok('up');
    if (!values.local) {
      await agent.ok('glidein', 'start', '--site', 'there', '-n', '1', '--walltime', '3000s', '--cores', '1');
      await agent.untilHome();
    }
    const [ours, theirs]: [number[], number[]] = [[], []];
    const cpu: string[] = [];
    for (let round = 0; round < rounds; round++) {
      const piece = randomBytes(1 << 20);
      for (let i = 0; i < mb; i++) {
        piece.writeUInt32LE(i);
        writeFileSync(big, piece, { flag: i === 0 ? 'w' : 'a' });
      }
      const warm = join(agent.dir, 'warm');
      touchMemory(warm, mb);
      const used = new CpuByName((line, environment) => {
        if (line.startsWith('sshd: ')) return 'sshd';
        if (
          !line.includes(sshd.home) &&
          !line.includes(agent.dir) &&
          !environment.includes(`GRYPHUS_HOME=${agent.home}`)
        )
          return undefined;
        return /central-manager|gridmanager|worker\.mjs|remote-io run|read\.py/.exec(line)?.[0];
      });
      await run('read.py');
      cpu.push(described(used));
      ours.push(...said('read'));
      touchMemory(warm, mb);
      const to = join(sshd.home, 'peer');
      const peers = new CpuByName((line) => /^(scp|\S*ssh|sshd|\S*sftp-server)(?=[ :])/.exec(line)?.[1]);
      const began = performance.now();
      await execFile('scp', ['-q', '-F', sshd.sshConfigFile, big, `site:${to}`]);
      theirs.push((performance.now() - began) / 1000);
      cpu.push(described(peers));
      rmSync(to);
    }
    const where = values.local ? "this machine's worker" : 'a pilot over ssh';
    console.log(
      `| ${mb} MB read at ${where} | ${median(ours).toFixed(1)} s | scp ${median(theirs).toFixed(1)} s | ${median(theirs.map((time, i) => time / (ours[i] ?? 0))).toFixed(2)} |`,
    );
    console.log(JSON.stringify({ read: ours, scp: theirs }));
    for (const line of cpu) console.log(`processor, seconds: ${line}`);
    if (files === 0) return;
    await run('open.py', `${rounds} ${files} ${opens}`);
    const [opened, first] = [said('opened'), said('brought')].map(median);
    console.log(
      `| ${opens} opens of ${files} files that are there | ${opened?.toFixed(2)} s | when they are brought ${first?.toFixed(1)} s |`,
    );
    console.log(agent.read('e'));
  } finally {
    await agent.end();
    await target.stop();
  }
}

/** So that neither pays for memory that a virtual machine's host has to find first, which takes longer than all else. */
function touchMemory(file: string, mb: number): void {
  const piece = Buffer.alloc(1 << 20);
  for (let i = 0; i < mb; i++) writeFileSync(file, piece, { flag: i === 0 ? 'w' : 'a' });
  rmSync(file);
}

function described(cpu: CpuByName): string {
  const all = [...cpu.end()].filter(([, seconds]) => seconds > 0.01);
  const sum = all.reduce((before, [, seconds]) => before + seconds, 0);
  return `${sum.toFixed(2)}: ${all.map(([name, seconds]) => `${name} ${seconds.toFixed(2)}`).join(', ')}`;
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;
}
