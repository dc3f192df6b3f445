import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CrashPoint } from '../../src/util/crash-point.ts';
import { until } from '../agent/agent.ts';
import { SLOW } from '../slow.ts';
import { SlowLink } from './slow-link.ts';
import { UsersPool } from './users-pool.ts';

const canRun =
  process.getuid?.() === 0 &&
  ['newuidmap', 'unshare', 'useradd'].every((name) => spawnSync('which', [name]).status === 0);
if (SLOW && !canRun)
  process.stderr.write(
    'Tests of results that come from workers themselves are left out: they need root and newuidmap.\n',
  );

const WAIT_MS = 240_000;
/** What each job gets and leaves, in bytes. */
const RESULT = 12e6;
const RESULTS: readonly CrashPoint[] = ['direct.asked', 'direct.told', 'direct.dialled', 'direct.up', 'direct.read'];
const INPUTS: readonly CrashPoint[] = [
  'inputs.asked',
  'inputs.told',
  'inputs.dialled',
  'inputs.up',
  'inputs.served',
  'inputs.pulled',
];

/** Who can dial whom. Inputs go to the worker itself if that can dial. */
const DIALS = ['the lender', 'the borrower'] as const;

describe.runIf(SLOW && canRun).each(DIALS)(
  'inputs and results that go between gateway and worker, when only %s can dial',
  (dials) => {
    let dir = '';
    let crashFile = '';
    let starts = '';
    let a: UsersPool;
    let b: UsersPool;
    let link: SlowLink;

    beforeAll(async () => {
      dir = mkdtempSync('/opt/flock-');
      chmodSync(dir, 0o755);
      const open = join(dir, 'open');
      mkdirSync(open);
      chmodSync(open, 0o777);
      crashFile = join(open, 'crash');
      starts = join(open, 'starts');
      writeFileSync(starts, '');
      chmodSync(starts, 0o666);
      const base = 20_000 + (process.pid % 20_000) + 2 * DIALS.indexOf(dials);
      const within = ['env', `GRYPHUS_CRASH_FILE=${crashFile}`];
      [a, b] = ['a', 'b'].map(
        (name, i) => new UsersPool(`fld${process.pid % 100_000}${name}${DIALS.indexOf(dials)}`, dir, base + i, within),
      ) as [UsersPool, UsersPool];
      const [dialled, dialling] = dials === 'the lender' ? [a, b] : [b, a];
      link = await SlowLink.open(dialled.port, 5);
      a.ok('config', 'pool.cpus', '1');
      b.ok('config', 'pool.cpus', '3');
      dialled.ok('config', 'flock.listen', `127.0.0.1:${dialled.port}`);
      const name = (pool: UsersPool) => (pool === a ? 'a' : 'b');
      const way = (pool: UsersPool) => (pool === a ? '--to' : '--from');
      dialled.ok('flock', 'add', name(dialling), way(dialled), '--new-key', 'new.key');
      dialling.file('their.key', readFileSync(join(dialled.work, 'new.key'), 'utf8'), 0o600);
      const url = `127.0.0.1:${link.port}`;
      dialling.ok('flock', 'add', name(dialled), way(dialling), '--url', url, '--key', 'their.key');
      for (const pool of [a, b]) pool.ok('up');
      await until('the partner to offer its machine', () => offers() === 3 || undefined, WAIT_MS);
      a.file('job.sh', `#!/bin/sh\necho "$GRYPHUS_KEY" >>${starts}\nmv "$2" out.txt\necho "$1"\n`, 0o755);
    }, 400_000);

    afterAll(() => {
      link?.close();
      for (const pool of [a, b]) pool?.end();
      rmSync(dir, { recursive: true, force: true });
    }, 120_000);

    const offers = () =>
      (JSON.parse(a.ok('flock', 'list', '--json')) as { status?: { offered: number } }[]).reduce(
        (sum, { status }) => sum + (status?.offered ?? 0),
        0,
      );
    const log = () => readFileSync(join(a.home, 'state/log/flock.log'), 'utf8');
    const times = (words: string) => log().split(words).length - 1;

    function submit(name: string, jobs: number): void {
      writeFileSync(starts, '');
      for (let i = 0; i < jobs; i++) a.file(`${name}.in.${i}`, contentOf(name, i));
      const lines = [
        'executable = job.sh',
        `arguments = $(Process) ${name}.in.$(Process)`,
        `transfer_input_files = ${name}.in.$(Process)`,
        'requirements = FlockPool == "b"',
        'transfer_output_files = out.txt',
        `transfer_output_remaps = "out.txt=${name}.$(Process)"`,
        `output = ${name}.o.$(Process)`,
        `log = ${name}.log`,
        `queue ${jobs}`,
      ];
      a.file(`${name}.sub`, `${lines.join('\n')}\n`);
      a.ok('submit', `${name}.sub`);
    }

    /** Each job ended, having run once, with all that it left. */
    function check(name: string, jobs: number): void {
      const keys = readFileSync(starts, 'utf8').trim().split('\n');
      expect(new Set(keys).size).toBe(keys.length);
      for (let i = 0; i < jobs; i++) {
        const digest = (text: string | Buffer) => createHash('sha256').update(text).digest('hex');
        const came = readFileSync(join(a.work, `${name}.${i}`));
        expect(digest(came), `${name}.${i}`).toBe(digest(contentOf(name, i)));
        expect(readFileSync(join(a.work, `${name}.o.${i}`), 'utf8')).toBe(`${i}\n`);
      }
    }

    /** No two jobs have the same. */
    function contentOf(name: string, i: number): string {
      return Array.from({ length: 2e6 }, (_, n) => `${i + n}\n`)
        .join('')
        .slice(0, RESULT - 100)
        .padEnd(RESULT, name);
    }

    const ended = (name: string, jobs: number) => a.read(`${name}.log`).split('\n005 (').length > jobs || undefined;

    it('come whole', async () => {
      submit('plain', 2);
      await until('the jobs to end', () => ended('plain', 2), WAIT_MS);
      check('plain', 2);
      expect([times('results of a job come from the worker itself'), times('by the gateways')]).toEqual([2, 0]);
      expect(times('inputs of a job go to its worker itself')).toBe(dials === 'the lender' ? 2 : 0);
    }, 400_000);

    it.each(dials === 'the lender' ? [...INPUTS, ...RESULTS] : RESULTS)(
      'come whole, and the job runs once, although a process dies at %s',
      async (point) => {
        await until('the partner to offer its machine', () => offers() === 3 || undefined, WAIT_MS);
        const name = point.replace('.', '-');
        writeFileSync(crashFile, point);
        chmodSync(crashFile, 0o666);
        submit(name, 1);
        await until('the job to end', () => ended(name, 1), WAIT_MS);
        check(name, 1);
        expect(existsSync(crashFile)).toBe(false);
        expect(readFileSync(starts, 'utf8').trim().split('\n')).toHaveLength(1);
      },
      600_000,
    );

    it('come whole through cuts of the line and deaths of every daemon', async () => {
      await until('the partner to offer its machine', () => offers() === 3 || undefined, WAIT_MS);
      submit('kills', 12);
      const kills = [
        () => b.kill('flock/gateway.pid'),
        () => a.kill('flock/gateway.pid'),
        () => link.cut(1000),
        () => b.kill('pool/central-manager.pid'),
        () => b.kill('pool/worker/worker.pid'),
        () => a.kill('pool/central-manager.pid'),
        () => link.cut(500),
      ];
      for (let turn = 0; !ended('kills', 12); turn++) {
        if (turn > 240) throw new Error(`${a.ok('q', '--nobatch')} ${a.ok('flock', 'show', 'b')}`);
        if (turn % 2 === 0) kills[turn / 2]?.();
        await new Promise((resume) => setTimeout(resume, 1500));
      }
      check('kills', 12);
    }, 900_000);
  },
);
