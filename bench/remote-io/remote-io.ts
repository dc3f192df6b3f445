import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startTarget } from '../../test/crash/sites.ts';
import { GlideinAgent } from '../../test/glidein/ground.ts';

const PROGRAM = `
import os, sys, time
from concurrent.futures import ThreadPoolExecutor
d = os.environ['GRYPHUS_SUBMIT_DIR']
rounds, files, opens = map(int, sys.argv[1:])
for r in range(rounds):
    began = time.time()
    with open(f'{d}/big{r}', 'rb', buffering=0) as f:
        got = 0
        while True:
            part = f.read(1 << 20)
            if not part: break
            got += len(part)
    print('read', got, time.time() - began)
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
    },
  });
  const [mb = 0, files = 0, opens = 0, rounds = 1] = [values.mb, values.files, values.opens, values.rounds].map(Number);
  const agent = new GlideinAgent();
  agent.configure();
  const target = await startTarget('fork, ssh', agent);
  try {
    const { sshd } = target;
    if (!sshd) throw new Error('no sshd');
    const piece = randomBytes(1 << 20);
    for (let round = 0; round < rounds; round++)
      for (let i = 0; i < mb; i++) {
        piece.writeUInt32LE(i);
        writeFileSync(join(agent.work, `big${round}`), piece, { flag: 'a' });
      }
    mkdirSync(join(agent.work, 'many'));
    for (let i = 0; i < files; i++) writeFileSync(join(agent.work, 'many', `f${i}`), randomBytes(64));
    agent.file('read.py', PROGRAM);
    await agent.ok('up');
    await agent.ok('glidein', 'start', '--site', 'there', '-n', '1', '--walltime', '3000s', '--cores', '1');
    await agent.untilHome();
    const cluster = await agent.submit(
      `executable = /usr/bin/python3\ntransfer_executable = false\narguments = read.py ${rounds} ${files} ${opens}\ntransfer_input_files = read.py\n` +
        `want_remote_io = true\nrequest_disk = 10M\noutput = o\nerror = e\nqueue\n`,
    );
    await agent.ok('wait', '--timeout', '1500', String(cluster));
    const scp = Array.from({ length: rounds }, (_, round) => {
      const to = join(sshd.home, 'peer');
      const began = performance.now();
      execFileSync('scp', ['-q', '-F', sshd.sshConfigFile, join(agent.work, `big${round}`), `site:${to}`]);
      rmSync(to);
      return (performance.now() - began) / 1000;
    });
    const said = (word: string) =>
      [...agent.read('o').matchAll(new RegExp(`^${word} \\d+ (.*)$`, 'gm'))].map(([, text]) => Number(text));
    const [ours, theirs, opened, first] = [said('read'), scp, said('opened'), said('brought')].map(median);
    console.log(
      `| ${mb} MB read at a pilot over ssh | ${ours?.toFixed(1)} s | scp ${theirs?.toFixed(1)} s | ${((theirs ?? 0) / (ours ?? 1)).toFixed(2)} |`,
    );
    console.log(
      `| ${opens} opens of ${files} files that are there | ${opened?.toFixed(2)} s | when they are brought ${first?.toFixed(1)} s |`,
    );
    console.log(JSON.stringify({ read: said('read'), scp, opened: said('opened'), err: agent.read('e') }));
  } finally {
    await agent.end();
    await target.stop();
  }
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;
}
