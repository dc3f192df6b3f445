import { execFile as execFileWithCallback, execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { TestAgent } from '../../test/agent/agent.ts';
import { startTarget } from '../../test/crash/sites.ts';
import type { Sshd } from '../../test/sites/sshd.ts';
import { CpuByName } from '../cpu.ts';

/*
 * Jobs with one large file, and with a directory of many small ones, as input and as output, at a fork site over ssh on
 * loopback. What such a job takes without files, of the same run, is subtracted.
 */

const execFile = promisify(execFileWithCallback);

interface Row {
  readonly what: string;
  readonly ours: number;
  readonly scp: number;
  readonly rsync: number | undefined;
  /** Seconds of processor time of our processes by part, and of scp's, in the first round. */
  readonly cpu: readonly [string, string];
}

export async function main(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      mb: { type: 'string', default: '1024' },
      files: { type: 'string', default: '10000' },
      rounds: { type: 'string', default: '3' },
      only: { type: 'string' },
      glidein: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
    },
  });
  const [mb, files, rounds] = [values.mb, values.files, values.rounds].map(Number);
  const agent = new TestAgent();
  if (values.glidein) agent.config('[pool]\nlocal_worker = false\n[glidein]\nnode = "own"\ndisk = "10M"\n');
  const target = await startTarget('fork, ssh', agent);
  const { sshd } = target;
  if (!sshd) throw new Error('no sshd');
  const where = values.glidein
    ? ['should_transfer_files = YES']
    : ['universe = grid', `grid_resource = ${target.resource}`];
  try {
    makeFiles(agent.work, mb ?? 0, files ?? 0);
    const there = join(sshd.home, 'from');
    mkdirSync(there);
    execFileSync('cp', ['-r', join(agent.work, 'big'), join(agent.work, 'many'), there]);
    await agent.ok('up');
    if (values.glidein) await agent.ok('glidein', 'start', '--site', 'there', '-n', '1', '--cores', '2');
    await job(agent, where, []);
    const rows: Row[] = [];
    for (const [name, what] of [
      ['big', `${mb} MB`],
      ['many', `${files} files of 1 KB`],
    ] as const) {
      if (values.only !== undefined && values.only !== name) continue;
      rows.push(
        await compared(
          `${what} to the site`,
          rounds ?? 1,
          { agent, sshd },
          where,
          [`transfer_input_files = ${name}`],
          () => peers(sshd, join(agent.work, name), `site:${join(sshd.home, 'peer')}`),
        ),
        await compared(
          `${what} home`,
          rounds ?? 1,
          { agent, sshd },
          where,
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
    const peaks = peaksOf(agent);
    if (values.json) console.log(JSON.stringify({ rows, peaks }, undefined, 2));
    else print(rows, peaks);
  } finally {
    await agent.end();
    await target.stop();
  }
}

function print(rows: readonly Row[], peaks: Readonly<Record<string, number>>): void {
  console.log('| what | Gryphus | scp | ratio | rsync | ratio |\n| --- | ---: | ---: | ---: | ---: | ---: |');
  const s = (n: number) => `${n.toFixed(1)} s`;
  for (const { what, ours, scp, rsync } of rows) {
    const other = rsync === undefined ? '– | –' : `${s(rsync)} | ${(rsync / ours).toFixed(2)}`;
    console.log(`| ${what} | ${s(ours)} | ${s(scp)} | ${(scp / ours).toFixed(2)} | ${other} |`);
  }
  for (const { what, cpu } of rows) console.log(`${what}, seconds of the processor: ${cpu.join('; ')}`);
  const each = Object.entries(peaks).map(([part, mb]) => `${part} ${mb.toFixed(0)} MB`);
  console.log(`Memory at most: ${each.join(', ')}.`);
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
  { agent, sshd }: { readonly agent: TestAgent; readonly sshd: Sshd },
  where: readonly string[],
  lines: readonly string[],
  others: () => Promise<{ readonly scp: number; readonly rsync: number | undefined }>,
): Promise<Row> {
  const ours: number[] = [];
  const theirs: Awaited<ReturnType<typeof others>>[] = [];
  let cpu: Row['cpu'] = ['', ''];
  for (let i = 0; i < rounds; i++) {
    const alone = await job(agent, where, []);
    // An input that the site has already is not sent again.
    if (lines[0]?.startsWith('transfer_input_files')) touch(agent.work, i);
    const used = new CpuByName((line, environment) => partOf(agent, sshd.home, line, environment));
    ours.push(Math.max(0.01, (await job(agent, where, lines)) - alone));
    const mine = described(used);
    const peers = new CpuByName((line) => /^(scp|\S*ssh|sshd|\S*sftp-server)(?=[ :])/.exec(line)?.[1]);
    theirs.push(await others());
    const scps = described(peers);
    if (i === 0) cpu = [mine, scps];
  }
  const rsync = theirs.flatMap((one) => one.rsync ?? []);
  return {
    what,
    ours: median(ours),
    scp: median(theirs.map((one) => one.scp)),
    rsync: rsync.length === 0 ? undefined : median(rsync),
    cpu,
  };
}

/** Changes each file in its last bytes. */
function touch(work: string, round: number): void {
  const stamp = randomBytes(8);
  stamp.writeUInt16LE(round);
  writeFileSync(join(work, 'big'), stamp, { flag: 'a' });
  for (const name of readdirSync(join(work, 'many'))) writeFileSync(join(work, 'many', name), stamp, { flag: 'a' });
}

async function job(agent: TestAgent, where: readonly string[], lines: readonly string[]): Promise<number> {
  const program = lines.some((line) => line.startsWith('executable')) ? [] : ['executable = /bin/true'];
  agent.file('job.sub', [...where, 'transfer_executable = false', ...program, ...lines, 'queue', ''].join('\n'));
  const began = performance.now();
  await agent.ok('submit', '--wait', 'job.sub');
  return (performance.now() - began) / 1000;
}

async function peers(sshd: Sshd, from: string, to: string): Promise<{ scp: number; rsync: number | undefined }> {
  const clear = () => rmSync(to.replace(/^site:/, ''), { recursive: true, force: true });
  const timed = async (command: string, ...words: string[]) => {
    clear();
    const began = performance.now();
    await execFile(command, [...words, from, to]);
    return (performance.now() - began) / 1000;
  };
  const scp = await timed('scp', '-q', '-r', '-F', sshd.sshConfigFile);
  try {
    execFileSync('rsync', ['--version'], { stdio: 'ignore' });
  } catch {
    clear();
    return { scp, rsync: undefined };
  }
  const rsync = await timed('rsync', '-a', '-e', `ssh -F ${sshd.sshConfigFile}`);
  clear();
  return { scp, rsync };
}

const PARTS: readonly (readonly [string, RegExp])[] = [
  ['Scheduler', /scheduler.main\.js/],
  ['GridManager', /gridmanager.main\.js/],
  ['central manager', /central-manager-main\.js/],
  ['worker', /worker\.mjs/],
];

/** What a process that moves files for us is called; the ssh servers' are told from others by their time only. */
function partOf(agent: TestAgent, home: string, line: string, environment: string): string | undefined {
  if (/^sshd: |sftp-server/.test(line)) return 'sshd';
  if (!`${line}${environment}`.includes(agent.dir) && !line.includes(home)) return undefined;
  const node = PARTS.find(([, pattern]) => pattern.test(line))?.[0];
  return node ?? (/sha256sum|openssl|jobmanager|wrapper/.exec(line)?.[0] || undefined);
}

function described(cpu: CpuByName): string {
  const all = [...cpu.end()].filter(([, seconds]) => seconds > 0.01);
  const sum = all.reduce((before, [, seconds]) => before + seconds, 0);
  return `${sum.toFixed(2)}: ${all.map(([name, seconds]) => `${name} ${seconds.toFixed(2)}`).join(', ')}`;
}

/** The most memory of each part of this agent, in MB. */
function peaksOf(agent: TestAgent): Record<string, number> {
  const peaks: Record<string, number> = {};
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      const part = PARTS.find(([, pattern]) => pattern.test(command))?.[0];
      const ours = readFileSync(`/proc/${pid}/environ`, 'utf8').includes(agent.dir);
      if (part !== undefined && ours) peaks[part] = Math.max(peaks[part] ?? 0, kbOf(pid) / 1000);
    } catch {
      // It has ended, or is somebody else's.
    }
  }
  return peaks;
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
