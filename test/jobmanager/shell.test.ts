import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { fork } from '../../src/backends/fork.ts';
import { BACKENDS } from '../../src/backends/registry.ts';
import { makeBundle } from '../../src/jobmanager/bundle.ts';
import { ASKING_CRASH_POINTS, DELEGATION_CRASH_POINTS, SITE_CRASH_POINTS } from '../../src/jobmanager/crash-points.ts';
import { entering } from '../../src/jobmanager/entering.ts';
import { octalEscape } from '../../src/site/escape.ts';
import { readExit } from '../../src/site/exit-record.ts';

const SRC = join(import.meta.dirname, '../../src');
const here = (name: string): string => readFileSync(join(SRC, name), 'utf8');
const OWN = ['records', 'submitting', 'arrays', 'looking', 'watching', 'asking', 'carrying', 'sweeping', 'proxies'].map(
  (name) => `jobmanager/${name}.sh`,
);
const PIECES = [...OWN, 'credentials/delegate.sh'];
const SHELLS = [['dash'], ['bash', '--posix'], ['busybox', 'sh']];
const scratch = mkdtempSync(join(tmpdir(), 'gsh-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
/** As at a site: all in one directory. */
const WRAPPER = join(scratch, 'bin/wrapper.sh');
mkdirSync(join(scratch, 'bin'));
for (const name of ['jobmanager/wrapper.sh', 'jobmanager/inputs.sh', 'jobmanager/memory.sh', 'util/ends.sh'])
  copyFileSync(join(SRC, name), join(scratch, 'bin', basename(name)));

/** The JobManager as one program, in which every name is visible where it is used. */
function whole(backend: string): string {
  const main = here('jobmanager/jobmanager.sh');
  const at = main.indexOf('for piece in ');
  const end = main.indexOf('done\n', at) + 5;
  return main.slice(0, at) + [`backends/${backend}`, ...PIECES].map(here).join('\n') + main.slice(end);
}

/** Links what a job's script needs into `bin`, for a PATH without any other tool. */
function linkTools(bin: string, ...more: readonly string[]): void {
  for (const name of [...'sh cat date mkdir rm sed tail wc mv uname tr ls find'.split(' '), ...more])
    if (!existsSync(join(bin, name)))
      symlinkSync(execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim(), join(bin, name));
}

describe('the shell programs', () => {
  it.each(Object.values(BACKENDS).map((backend) => backend.name))('pass shellcheck with %s', (name) => {
    const file = join(scratch, `${name}.sh`);
    writeFileSync(file, whole(`${name}.sh`));
    const found = spawnSync('shellcheck', ['-s', 'sh', '-e', 'SC2317', file], { encoding: 'utf8' });
    expect(found.stdout).toBe('');
    expect(found.status).toBe(0);
  });

  it.each([
    'jobmanager/entering.sh',
    'jobmanager/wrapper.sh',
    'jobmanager/inputs.sh',
    'jobmanager/io-proxy.sh',
    'jobmanager/memory.sh',
    'util/ends.sh',
    'gram/gram-job.sh',
    'backends/fork-worker.sh',
    'backends/fork-start.sh',
    'backends/slurm-job.sh',
  ])('pass shellcheck: %s', (name) => {
    const found = spawnSync('shellcheck', ['-s', 'sh', join(SRC, name)], { encoding: 'utf8' });
    expect(found.stdout).toBe('');
  });

  it('have every crash point of the list, and no other', () => {
    const text = [...PIECES, 'jobmanager/jobmanager.sh'].map(here).join('\n');
    const found = [...text.matchAll(/^\s*crash_point (\S+)$/gm)].map((m) => m[1]);
    expect(new Set(found)).toEqual(new Set([...SITE_CRASH_POINTS, ...DELEGATION_CRASH_POINTS, ...ASKING_CRASH_POINTS]));
  });

  it('are all carried to the site', () => {
    const carried = new Set(Object.values(BACKENDS).flatMap((b) => b.shell));
    const there = readdirSync(join(SRC, 'backends')).filter((name) => name.endsWith('.sh'));
    expect(there.filter((name) => !carried.has(name))).toEqual([]);
  });
});

describe.skipIf(!existsSync('/bin/busybox'))('the JobManager where busybox is all there is', () => {
  it('takes each body to its end and not a byte of the next, of 0 bytes and of more than a block', async () => {
    const tools = join(scratch, 'busybox');
    mkdirSync(tools);
    execFileSync('/bin/busybox', ['--install', '-s', tools]);
    const { hash, installer } = await makeBundle(fork, `PATH=${tools}`);
    const options = { env: { PATH: tools, HOME: scratch }, encoding: 'utf8', cwd: tools } as const;
    const place = { agentId: 'agent', scratch: '~/site' };
    execFileSync(join(tools, 'sh'), ['-s'], { ...options, input: `${entering(place, { make: true })}${installer}` });
    const blobs = [Buffer.from('one\n'), Buffer.alloc(0), randomBytes(150_001)];
    const requests = blobs.map((blob, index) => {
      const names = `${createHash('sha256').update(blob).digest('hex')}:${blob.length} `;
      return Buffer.concat([Buffer.from(`${index + 1} blobs ${names.length} ${blob.length}\n${names}`), blob]);
    });
    const manager = spawnSync(
      join(tools, 'sh'),
      ['-c', `${entering(place, { make: false })}\nexec sh ./bin/${hash}/jobmanager.sh agent nonce`],
      { ...options, input: Buffer.concat(requests), timeout: 60_000 },
    );
    const answers = manager.stdout.split('\n').filter((line) => /^(stored|bad|end)/.test(line));
    expect(answers.map((line) => line.split(' ')[0])).toEqual(['end', ...blobs.flatMap(() => ['stored', 'end'])]);
  }, 70_000);
});

describe.each(SHELLS)('the wrapper under %s', (...words) => {
  const shell = words.filter((word): word is string => typeof word === 'string');
  let count = 0;
  const attempt = (
    lines: string[],
  ): {
    key: string;
    dir: string;
    words: readonly string[];
    run: (forward?: string, env?: NodeJS.ProcessEnv) => ReturnType<typeof spawnSync>;
  } => {
    const key = `w${shell[0]}.${++count}.0.1`;
    const dir = join(scratch, 'jobs', key);
    mkdirSync(dir, { recursive: true });
    for (const sub of ['events', 'cache']) mkdirSync(join(scratch, sub), { recursive: true });
    writeFileSync(join(dir, 'spec'), ['prepared 1', ...lines, 'end', ''].join('\n'));
    const [command = '', ...args] = shell;
    const words = [command, ...args, WRAPPER, scratch, key, '1', ''];
    const run = (forward = '', env = process.env) =>
      spawnSync(command, [...words.slice(1, -1), forward, '77'], { encoding: 'utf8', env });
    return { key, dir, words, run };
  };
  const script = (text: string): string[] => ['there /bin/sh', 'program', 'arg -c', `arg ${text}`];
  const exit = (dir: string) => readExit(readFileSync(join(dir, 'exit'), 'utf8').trimEnd())?.ending.how;

  const END_CASES: readonly [string, object][] = [
    ...[0, 1, 127, 128, 129, 130, 137, 141, 143, 192, 193, 255].map(
      (code) => [`exit ${code}`, { kind: 'exited', code }] as [string, object],
    ),
    ...[1, 2, 6, 9, 11, 13, 15, 34, 64].map(
      (signal) => [`ulimit -c 0; kill -${signal} $$`, { kind: 'signaled', signal }] as [string, object],
    ),
  ];
  it.each(END_CASES)('tells %s, at once and after a while', (text, how) => {
    const quick = attempt(script(text));
    quick.run();
    const slow = attempt(script(`sleep 0.3; ${text}`));
    slow.run();
    expect([exit(quick.dir), exit(slow.dir)]).toEqual([how, how]);
  });

  it('lets one copy run, and the others leave with a word', () => {
    const { key, dir, run } = attempt(script(`echo x >>${scratch}/ledger.$GRYPHUS_KEY`));
    expect([run().status, run().status, run().status]).toEqual([0, 217, 217]);
    expect(readFileSync(join(scratch, `ledger.${key}`), 'utf8')).toBe('x\n');
    expect(existsSync(join(scratch, 'events', `${key}.1.d`))).toBe(true);
    expect(exit(dir)).toEqual({ kind: 'exited', code: 0 });
  });

  it('runs nothing where it was fenced, or where the record is gone', () => {
    const { key, dir, run } = attempt(script(`echo x >>${scratch}/ledger.$GRYPHUS_KEY`));
    writeFileSync(join(dir, 'run.lock.1'), 'lost\n');
    expect(run().status).toBe(217);
    rmSync(dir, { recursive: true });
    expect(run().status).toBe(216);
    expect(existsSync(join(scratch, `ledger.${key}`))).toBe(false);
  });

  it('runs nothing of half a record', () => {
    const { dir, run } = attempt(script(`echo x >>${scratch}/half`));
    writeFileSync(join(dir, 'spec'), readFileSync(join(dir, 'spec'), 'utf8').replace(/end\n$/, ''));
    expect(run().status).toBe(219);
    expect(existsSync(join(scratch, 'half'))).toBe(false);
  });

  it('names the ads to the program, which are no results of it', () => {
    const { dir, run } = attempt(script('cat "$_CONDOR_JOB_AD" "$_CONDOR_MACHINE_AD"'));
    mkdirSync(join(dir, 'work'));
    writeFileSync(join(dir, 'work/.job.ad'), 'ClusterId = 7\n');
    writeFileSync(join(dir, 'work/.machine.ad'), 'Cpus = 2\n');
    expect(run().status).toBe(0);
    const said = readFileSync(join(dir, 'stdout'), 'utf8');
    expect(said).toMatch(/^ClusterId = 7\nCpus = 2\nMachine = "(.+)"\nName = "\1"\n$/);
    expect(readFileSync(join(dir, 'names'), 'utf8')).toBe('/.job.ad/.machine.ad/');
  });

  /** Commands that record how they are called, and a PATH in which they come first. */
  const noting = (dir: string, ...names: string[]): { readonly calls: () => string; readonly bin: string } => {
    const bin = join(dir, 'bin');
    const log = join(dir, 'calls');
    mkdirSync(bin, { recursive: true });
    writeFileSync(log, '');
    for (const name of names) {
      const real = execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim();
      const text = `#!/bin/sh\nprintf '%s\\n' "$@" >>'${log}'\nexec ${real} "$@"\n`;
      writeFileSync(join(bin, name), text, { mode: 0o755 });
    }
    return { calls: () => readFileSync(log, 'utf8'), bin };
  };

  it('gives the program variables of every name and value, and puts none of them on a command line', () => {
    const own = 'KEY N ROOT BIN VALUE line others DIR CHILD STATUS got RESET sh i'.split(' ');
    const shells = 'PS4 ENV LC_ALL CDPATH POSIXLY_CORRECT MAIL TERM'.split(' ');
    const rare =
      'RANDOM SECONDS UID SHELLOPTS BASHOPTS BASH_VERSION SHLVL TMOUT status path argv IFS LINENO OPTIND'.split(' ');
    const odd = ['a-b', 'a.b', '1x', 'é', 'x y', '%s'];
    const value = `S3CRET$(exit 3)'"\\ \t*é\nend=`;
    const names = [...own, ...shells, 'TOKEN', 'EMPTY'];
    const pairs = [
      ...names.map((name) => `${name}=${name === 'EMPTY' ? '' : value}`),
      ...[...rare, ...odd].map((name) => `${name}=plain ${name}`),
    ];
    const { dir, run } = attempt([
      ...pairs.map((pair) => `env ${octalEscape(pair)}`),
      'there /usr/bin/env',
      'program',
      'arg -0',
    ]);
    const { calls, bin } = noting(dir, 'env');
    expect(run('', { ...process.env, PATH: `${bin}:${process.env['PATH']}` }).status).toBe(0);
    const found = readFileSync(join(dir, 'stdout'), 'utf8').split('\0');
    expect(pairs.filter((pair) => !found.includes(pair))).toEqual([]);
    expect(calls()).toContain('plain a-b');
    expect(calls()).not.toContain('S3CRET');
    expect(readFileSync(join(dir, 'stderr'), 'utf8')).toBe('');
  });

  it.each(['curl', 'wget'])('tells %s what to fetch, on no command line', async (tool) => {
    const seen: string[] = [];
    const server = createServer((request, response) => {
      seen.push(request.url ?? '');
      response.end('content');
    });
    await new Promise<void>((done) => void server.listen(0, '127.0.0.1', done));
    const { port } = server.address() as AddressInfo;
    const path = `/a%20b/c.txt?sig=S3CRET&q=x'$(z)"`;
    const url = `url http://127.0.0.1:${port}${octalEscape(path)}`;
    const { dir, words } = attempt([url, `as ${octalEscape("in '$(x)")}`, ...script('cat in*')]);
    const { calls, bin } = noting(dir, tool, 'env');
    // No other directory, so that the other tool is not found.
    linkTools(bin, 'sha256sum');
    const real = execFileSync('sh', ['-c', `command -v ${words[0]}`], { encoding: 'utf8' }).trim();
    await promisify(execFile)(real, words.slice(1), { env: { ...process.env, PATH: bin } });
    server.close();
    expect(readFileSync(join(dir, 'stdout'), 'utf8')).toBe('content');
    expect(seen.map((one) => decodeURIComponent(one))).toEqual([decodeURIComponent(path)]);
    expect(calls()).toContain("in '$(x)");
    expect(calls()).not.toContain('S3CRET');
  });

  it('does not use a wget that is only told on its command line what to fetch', () => {
    const { dir, run } = attempt(['url http://127.0.0.1/x?sig=S3CRET', 'as in', ...script('cat in')]);
    const bin = join(dir, 'bin');
    mkdirSync(bin);
    const log = join(dir, 'calls');
    const text = `#!/bin/sh\n[ "$1" != --help ] || exec echo 'Usage: wget [-c] [-O FILE] URL...'\nprintf '%s\\n' "$@" >'${log}'\n`;
    writeFileSync(join(bin, 'wget'), text, { mode: 0o755 });
    linkTools(bin, shell[0] ?? '');
    expect(run('', { ...process.env, PATH: bin }).status).toBe(219);
    expect(exit(dir)).toMatchObject({ message: expect.stringContaining('its wget would show the URL') as unknown });
    expect(existsSync(log)).toBe(false);
  });

  it('sees how much memory the program and its children had', () => {
    const seen = `[ "$(cat '../run.lock.1/memory' 2>/dev/null || echo 0)" -gt 30000 ]`;
    const hungry = `awk 'BEGIN { s = "x"; while (length(s) < 40000000) s = s s; system("exec sleep 5") }' & p=$!`;
    const { dir, run } = attempt(
      script(`${hungry}; i=0; until ${seen} || [ $((i += 1)) -gt 100 ]; do sleep 0.1; done; kill $p`),
    );
    expect(run().status).toBe(0);
    const usage = readExit(readFileSync(join(dir, 'exit'), 'utf8').trimEnd())?.ending.usage;
    expect(usage?.maxRssKb).toBeGreaterThan(30_000);
  });

  it('passes on the signals that only it was sent, and waits for the program all the same', () => {
    const text =
      "trap 'echo usr1' USR1; trap 'echo term; exit 5' TERM; echo ready; i=0; while [ $i -lt 100 ]; do sleep 0.05; i=$((i+1)); done";
    const { key, dir } = attempt(script(text));
    const drive = `"$@" & p=$!; until grep -q ready '${dir}/stdout' 2>/dev/null; do sleep 0.02; done
      kill -USR1 $p; until grep -q usr1 '${dir}/stdout'; do sleep 0.02; done; kill -TERM $p; wait $p`;
    execFileSync('bash', ['-c', `${drive}; exit 0`, 'sh', ...shell, WRAPPER, scratch, key, '1', 'USR1 TERM']);
    expect(readFileSync(join(dir, 'stdout'), 'utf8')).toBe('ready\nusr1\nterm\n');
    expect(exit(dir)).toEqual({ kind: 'exited', code: 5 });
    expect(readFileSync(join(dir, 'exit'), 'utf8')).toContain('got=USR1,TERM ');
  });
});
