import { type ChildProcess, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../agent/agent.ts';
import { SLOW } from '../slow.ts';
import { Cable, Network, networksMissing } from './networks.ts';
import { UsersPool } from './users-pool.ts';
import { startUsersSshd } from './users-sshd.ts';

const missing = [networksMissing(), ...['newuidmap', 'sshd', 'useradd'].filter(isMissing)].find((one) => one);
if (SLOW && missing !== undefined)
  process.stderr.write(`Tests of a flock over networks of their own are left out: ${missing} is missing.\n`);

/** Each way, so an answer takes 30 ms. */
const DELAY_MS = 15;
const WAIT_MS = 240_000;
const JOBS = 10;
/** What each job leaves, in bytes. */
const RESULT = 24e6;
/** The digest of `seq`'s lines from a number on, up to so many bytes. */
const result = (first: number): string => {
  const lines = Array.from({ length: 4e6 }, (_, i) => `${first + i}\n`);
  return createHash('sha256').update(lines.join('').slice(0, RESULT)).digest('hex');
};

function isMissing(program: string): boolean {
  return spawnSync('which', [program]).status !== 0;
}

interface Seen {
  readonly status?: { readonly connected: boolean; readonly offered: number };
}

describe.runIf(SLOW && missing === undefined)('three pools, each in a network of its own', () => {
  let dir = '';
  /** Where the jobs write what they do: a stranger's own files would be gone with it. */
  let diary = '';
  let a: UsersPool;
  let b: UsersPool;
  let c: UsersPool;
  let networks: readonly Network[] = [];
  let toB: Cable;
  let toC: Cable;
  let sshd: ChildProcess | undefined;

  beforeAll(async () => {
    dir = mkdtempSync('/opt/flock-');
    chmodSync(dir, 0o755);
    diary = join(dir, 'diary');
    writeFileSync(diary, '');
    chmodSync(diary, 0o666);
    const [home, direct, hidden] = [new Network(), new Network(), new Network()];
    networks = [home, direct, hidden];
    toB = await Cable.lay(home, direct, DELAY_MS);
    toC = await Cable.lay(home, hidden, DELAY_MS);
    const made = (name: string, { within }: Network) =>
      new UsersPool(`net${process.pid % 100_000}${name}`, dir, 9617, within);
    [a, b, c] = [made('a', home), made('b', direct), made('c', hidden)];
    a.ok('config', 'pool.cpus', '1');
    sshd = await startUsersSshd(c, a, 'c-machine', toC.far.address);
    for (const [lender, name, listen, via] of [
      [b, 'b', toB.far.address, []],
      [c, 'c', '127.0.0.1', ['--via', 'c-machine']],
    ] as const) {
      lender.ok('config', 'pool.cpus', '2');
      lender.ok('config', 'flock.listen', `${listen}:${lender.port}`);
      lender.ok('flock', 'add', 'a', '--from', '--new-key', 'a.key');
      a.file(`${name}.key`, readFileSync(join(lender.work, 'a.key'), 'utf8'), 0o600);
      a.ok('flock', 'add', name, '--to', '--url', `${listen}:${lender.port}`, ...via, '--key', `${name}.key`);
    }
    for (const pool of [a, b, c]) pool.ok('up');
    await until('both partners to offer their machines', () => offers() === 4 || undefined, WAIT_MS);
  }, 400_000);

  afterAll(() => {
    for (const pool of [a, b, c]) pool?.end();
    sshd?.kill('SIGKILL');
    for (const cable of [toB, toC]) cable?.close();
    for (const network of networks) network.close();
    rmSync(dir, { recursive: true, force: true });
  }, 120_000);

  const partners = (): readonly Seen[] => JSON.parse(a.ok('flock', 'list', '--json')) as readonly Seen[];
  const offers = () => partners().reduce((sum, { status }) => sum + (status?.offered ?? 0), 0);
  const links = () => partners().filter(({ status }) => status?.connected === true).length;
  /** What jobs wrote: when, the attempt's key, their user, a word. */
  const written = () =>
    readFileSync(diary, 'utf8')
      .split('\n')
      .flatMap((line) => {
        const [at, key, uid, word] = line.split(' ');
        return key === undefined || word === undefined ? [] : [{ at: Number(at), key, uid: Number(uid), word }];
      });
  const keysOf = (word: string) => written().flatMap((one) => (one.word === word ? [one.key] : []));
  /** How often jobs at partners wrote it: there they are another user than that of a pool. */
  const abroad = (word: string) => {
    const homes = [a, b, c].map(({ user }) => Number(spawnSync('id', ['-u', user], { encoding: 'utf8' }).stdout));
    return written().filter((one) => one.word === word && !homes.includes(one.uid)).length;
  };
  const note = (word: string) => `echo "$(date +%s.%N) $GRYPHUS_KEY $(id -u) ${word}" >>${diary}`;

  it('run each job once, with all its results, through cuts that both sides know of', async () => {
    a.file(
      'job.sh',
      ['#!/bin/sh', note('start'), 'cat in.txt', 'sleep 20', `seq "$1" 99999999 | head -c ${RESULT} >out.txt`].join(
        '\n',
      ) + `\necho over\n${note('end')}\n`,
      0o755,
    );
    a.file('in.txt', 'input\n'.repeat(200_000));
    const lines = [
      'executable = job.sh',
      'arguments = $(Process)',
      'transfer_input_files = in.txt',
      'transfer_output_files = out.txt',
      'transfer_output_remaps = "out.txt=out.$(Process)"',
      'output = o.$(Process)',
      'log = jobs.log',
      `queue ${JOBS}`,
    ];
    a.file('jobs.sub', `${lines.join('\n')}\n`);
    a.ok('submit', 'jobs.sub');

    await until('jobs to run at both partners', () => abroad('start') >= 4 || undefined, WAIT_MS);
    for (const cable of [toB, toC]) cable.cut();
    await until('our side to know that both are away', () => links() === 0 || undefined, WAIT_MS);
    await until('the jobs there to end meanwhile', () => abroad('end') >= 4 || undefined, WAIT_MS);
    const before = toB.arrived + toC.arrived;
    for (const cable of [toB, toC]) cable.mend();
    // A link is cut again while results come home over it.
    await until('results to come', () => toB.arrived + toC.arrived > before + RESULT / 2 || undefined, WAIT_MS);
    for (const cable of [toB, toC]) cable.cut();
    await until('our side to know it again', () => links() === 0 || undefined, WAIT_MS);
    for (const cable of [toB, toC]) cable.mend();

    const there = (name: string) => Array.from({ length: JOBS }, (_, i) => existsSync(join(a.work, `${name}.${i}`)));
    await until('all results', () => there('out').every(Boolean) || undefined, WAIT_MS);
    await until('all jobs to be over', () => a.read('jobs.log').split('\n005 (').length > JOBS || undefined, WAIT_MS);
    expect(keysOf('start').sort()).toEqual([...new Set(keysOf('start'))].sort());
    // No lease was over, so nothing had to run again.
    expect(keysOf('start')).toHaveLength(JOBS);
    expect(abroad('start')).toBeGreaterThanOrEqual(4);
    for (let i = 0; i < JOBS; i++) {
      expect(readFileSync(join(a.work, `o.${i}`), 'utf8')).toBe(`${'input\n'.repeat(200_000)}over\n`);
      const digest = createHash('sha256')
        .update(readFileSync(join(a.work, `out.${i}`)))
        .digest('hex');
      expect(digest, `out.${i}`).toBe(result(i));
    }
  }, 900_000);

  it('never run a job at two places at once, though the link stays cut beyond its lease', async () => {
    await until('machines to be offered again', () => offers() === 4 || undefined, WAIT_MS);
    rmSync(join(a.work, 'jobs.log'), { force: true });
    writeFileSync(diary, '');
    const alive = `i=0; while [ $i -lt 1200 ]; do i=$((i + 1)); ${note('alive')}; sleep 0.2; done`;
    a.file('long.sh', `#!/bin/sh\n${alive}\n`, 0o755);
    const lines = ['executable = long.sh', 'job_lease_duration = 90', 'requirements = FlockPool =!= undefined'];
    a.file('long.sub', `${lines.join('\n')}\nlog = long.log\nqueue\n`);
    a.ok('submit', 'long.sub');
    await until('it to run at a partner', () => keysOf('alive').length > 10 || undefined, WAIT_MS);
    const [first] = keysOf('alive');
    const isAt = (pool: UsersPool) => pool.ok('flock', 'show', 'a', '--json').includes(first ?? '-');
    const [cable, lender] = isAt(b) ? [toB, b] : [toC, c];
    cable.cut();
    const second = () => written().filter(({ key }) => key !== first);
    await until('it to run at the other', () => second().length > 10 || undefined, WAIT_MS);
    const last = written()
      .filter(({ key }) => key === first)
      .at(-1);
    expect(second()[0]?.at).toBeGreaterThan(last?.at ?? Number.POSITIVE_INFINITY);
    cable.mend();
    await until('the link to be back', () => links() === 2 || undefined, WAIT_MS);
    await until('nothing of it to be left there', () => !isAt(lender) || undefined, WAIT_MS);
    expect(
      written()
        .filter(({ key }) => key === first)
        .at(-1),
    ).toEqual(last);
    a.ok('rm', '--all');
  }, 900_000);
});
