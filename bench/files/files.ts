import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { TestAgent } from '../../test/agent/agent.ts';
import { startTarget, type Target } from '../../test/crash/sites.ts';
import type { Sshd } from '../../test/sites/sshd.ts';

/*
 * Jobs with one large file, and with a directory of many small ones, as input and as output, at a fork site over ssh on
 * loopback. What such a job takes without files, of the same run, is subtracted.
 */

interface Row {
  readonly what: string;
  readonly ours: number;
  readonly scp: number;
  readonly rsync: number | undefined;
}

export async function main(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      mb: { type: 'string', default: '1024' },
      files: { type: 'string', default: '10000' },
      rounds: { type: 'string', default: '3' },
      only: { type: 'string' },
      json: { type: 'boolean', default: false },
    },
  });
  const [mb, files, rounds] = [values.mb, values.files, values.rounds].map(Number);
  const agent = new TestAgent();
  const target = await startTarget('fork, ssh', agent);
  try {
    const { sshd } = target;
    if (!sshd) throw new Error('no sshd');
    makeFiles(agent.work, mb ?? 0, files ?? 0);
    const there = join(sshd.home, 'from');
    mkdirSync(there);
    execFileSync('cp', ['-r', join(agent.work, 'big'), join(agent.work, 'many'), there]);
    await agent.ok('up');
    await job(agent, target, []);
    const rows: Row[] = [];
    for (const [name, what] of [
      ['big', `${mb} MB`],
      ['many', `${files} files of 1 KB`],
    ] as const) {
      if (values.only !== undefined && values.only !== name) continue;
      rows.push(
        await compared(`${what} to the site`, rounds ?? 1, agent, target, [`transfer_input_files = ${name}`], () =>
          peers(sshd, join(agent.work, name), `site:${join(sshd.home, 'peer')}`),
        ),
        await compared(
          `${what} home`,
          rounds ?? 1,
          agent,
          target,
          // Links: what is made at the site costs nothing.
          [
            'executable = /bin/cp',
            `arguments = -rl ${there}/${name} out.${name}`,
            `transfer_output_files = out.${name}`,
          ],
          () => peers(sshd, `site:${join(there, name)}`, join(agent.work, 'peer')),
        ),
      );
    }
    const peak = Math.max(...pidsOf(agent).map((pid) => kbOf(pid) / 1000));
    if (values.json) console.log(JSON.stringify({ rows, peak }, undefined, 2));
    else print(rows, peak);
  } finally {
    await agent.end();
    await target.stop();
  }
}

function print(rows: readonly Row[], peak: number): void {
  console.log('| what | Gryphus | scp | ratio | rsync | ratio |\n| --- | ---: | ---: | ---: | ---: | ---: |');
  const s = (n: number) => `${n.toFixed(1)} s`;
  for (const { what, ours, scp, rsync } of rows) {
    const other = rsync === undefined ? '– | –' : `${s(rsync)} | ${(rsync / ours).toFixed(2)}`;
    console.log(`| ${what} | ${s(ours)} | ${s(scp)} | ${(scp / ours).toFixed(2)} | ${other} |`);
  }
  console.log(`The largest of the agent's processes: ${peak.toFixed(0)} MB at most.`);
}

function makeFiles(work: string, mb: number, files: number): void {
  const megabyte = 1 << 20;
  const some = randomBytes(megabyte);
  writeFileSync(join(work, 'big'), '');
  for (let i = 0; i < mb; i++) {
    // No two pieces are equal.
    some.writeUInt32LE(i);
    writeFileSync(join(work, 'big'), some, { flag: 'a' });
  }
  mkdirSync(join(work, 'many'));
  for (let i = 0; i < files; i++) writeFileSync(join(work, 'many', `f${i}`), randomBytes(1024));
}

/** Medians; in turns, because other work on the machine changes. */
async function compared(
  what: string,
  rounds: number,
  agent: TestAgent,
  target: Target,
  lines: readonly string[],
  others: () => { readonly scp: number; readonly rsync: number | undefined },
): Promise<Row> {
  const ours: number[] = [];
  const theirs: ReturnType<typeof others>[] = [];
  for (let i = 0; i < rounds; i++) {
    const alone = await job(agent, target, []);
    // An input that the site has already is not sent again.
    if (lines[0]?.startsWith('transfer_input_files')) touch(agent.work, i);
    ours.push(Math.max(0.01, (await job(agent, target, lines)) - alone));
    theirs.push(others());
  }
  const rsync = theirs.flatMap((one) => one.rsync ?? []);
  return {
    what,
    ours: median(ours),
    scp: median(theirs.map((one) => one.scp)),
    rsync: rsync.length === 0 ? undefined : median(rsync),
  };
}

/** Changes each file in its last bytes. */
function touch(work: string, round: number): void {
  const stamp = randomBytes(8);
  stamp.writeUInt16LE(round);
  writeFileSync(join(work, 'big'), stamp, { flag: 'a' });
  for (const name of readdirSync(join(work, 'many'))) writeFileSync(join(work, 'many', name), stamp, { flag: 'a' });
}

async function job(agent: TestAgent, target: Target, lines: readonly string[]): Promise<number> {
  const program = lines.some((line) => line.startsWith('executable')) ? [] : ['executable = /bin/true'];
  agent.file(
    'job.sub',
    [
      'universe = grid',
      `grid_resource = ${target.resource}`,
      'transfer_executable = false',
      ...program,
      ...lines,
      'queue',
      '',
    ].join('\n'),
  );
  const began = performance.now();
  await agent.ok('submit', '--wait', 'job.sub');
  return (performance.now() - began) / 1000;
}

function peers(sshd: Sshd, from: string, to: string): { scp: number; rsync: number | undefined } {
  const clear = () => rmSync(to.replace(/^site:/, ''), { recursive: true, force: true });
  const timed = (command: string, ...words: string[]) => {
    clear();
    const began = performance.now();
    execFileSync(command, [...words, from, to]);
    return (performance.now() - began) / 1000;
  };
  const scp = timed('scp', '-q', '-r', '-F', sshd.sshConfigFile);
  try {
    execFileSync('rsync', ['--version'], { stdio: 'ignore' });
  } catch {
    clear();
    return { scp, rsync: undefined };
  }
  const rsync = timed('rsync', '-a', '-e', `ssh -F ${sshd.sshConfigFile}`);
  clear();
  return { scp, rsync };
}

function pidsOf(agent: TestAgent): string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      return (
        /^\d+$/.test(pid) &&
        readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`GRYPHUS_HOME=${agent.home}`) &&
        /main\.js/.test(readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
      );
    } catch {
      return false;
    }
  });
}

function kbOf(pid: string): number {
  try {
    return Number(/^VmHWM:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;
}
