import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type FetchProgress, openQueue, stopRedis } from '../../src/queue/api.ts';
import { howToInstall } from '../../src/queue/redis-advice.ts';

const { PATH, APT_CONFIG } = process.env;
let bin = '';
let dir = '';
let stateDir = '';

beforeAll(() => {
  bin = mkdtempSync('/tmp/gq-bin-');
  withoutRedis();
});

afterAll(() => rmSync(bin, { recursive: true }));

beforeEach(() => {
  dir = mkdtempSync('/tmp/gq-');
  // Characters with a meaning to a shell, to ld.so or in redis.conf.
  stateDir = join(dir, 'a "state": $(touch oops); $ORIGIN ü\n%');
  process.env['PATH'] = bin;
});

afterEach(async () => {
  process.env['PATH'] = PATH;
  if (APT_CONFIG === undefined) delete process.env['APT_CONFIG'];
  else process.env['APT_CONFIG'] = APT_CONFIG;
  await stopRedis({ stateDir });
  if (existsSync('oops')) throw new Error('the name of a directory was run as a command');
  rmSync(dir, { recursive: true });
});

/** All programs of this machine except Redis. */
function withoutRedis(): void {
  const places = ['/usr/bin', '/usr/sbin', '/bin', '/sbin'].flatMap((from) =>
    readdirSync(from).map((name) => [name, join(from, name)] as const),
  );
  for (const [name, path] of new Map(places.reverse()))
    if (!/^(redis|valkey)-/.test(name)) symlinkSync(path, join(bin, name));
}

/** apt with settings that differ from the machine's. */
function aptWith(...lines: readonly string[]): void {
  process.env['APT_CONFIG'] = join(dir, 'apt.conf');
  writeFileSync(join(dir, 'apt.conf'), lines.map((line) => `${line};\n`).join(''));
}

async function openFetched(steps: FetchProgress[] = []): Promise<void> {
  const queue = await openQueue({ stateDir, onFetch: (progress) => steps.push(progress) });
  expect((await queue.totals()).jobs).toBe(0);
  await queue.close();
}

const left = () => readdirSync(stateDir).filter((name) => name.startsWith('redis-program'));

const online =
  process.env['CI'] === 'true' || spawnSync('apt-get', ['download', '--print-uris', 'redis-server']).status === 0;

describe.runIf(online)('where there is no redis-server', () => {
  it('one is fetched once, however many ask for it', async () => {
    const steps: FetchProgress[][] = [[], [], []];
    await Promise.all(steps.map((own) => openFetched(own)));
    const said = steps.map((own) => [...new Set(own.map(({ step }) => step))]);
    expect(said.filter((own) => own.includes('fetching'))).toEqual([['fetching', 'done']]);
    expect(said.filter((own) => own.join() === 'waiting,done')).toHaveLength(2);
    const percents = steps.find((own) => own[0]?.step === 'fetching')?.map(({ percent }) => percent) ?? [];
    expect(percents).toEqual([...new Set(percents)].sort((a, b) => a - b));
    expect(left()).toEqual(['redis-program', 'redis-program.lock']);
    // The next one does not ask apt again.
    await stopRedis({ stateDir });
    aptWith('Acquire::http::Proxy "http://127.0.0.1:9"');
    await openFetched();
  });

  it('an interrupted fetch leaves nothing that harms the next', async () => {
    const api = resolve(import.meta.dirname, '../../dist/queue/api.js');
    const script = `const { openQueue } = await import(${JSON.stringify(api)});
      await openQueue({ stateDir: ${JSON.stringify(stateDir)}, onFetch: ({ percent }) => console.log(percent) });`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await seen(child, (percent) => percent > 10);
    child.kill('SIGKILL');
    mkdirSync(join(stateDir, 'redis-program.new/unpacked'), { recursive: true });
    await openFetched();
    expect(left()).toEqual(['redis-program', 'redis-program.lock']);
  });

  it('a network that is away is said in one sentence, and the way out', async () => {
    aptWith('Acquire::http::Proxy "http://127.0.0.1:9"', 'Acquire::Retries "0"');
    await expect(openQueue({ stateDir })).rejects.toMatchObject({
      code: 'missing-program',
      message: expect.stringMatching(
        /^There is no redis-server .* could be fetched: Failed to fetch http.* Could not connect [^\n]*$/,
      ),
      suggestions: [expect.stringContaining('apt-get install redis-server'), expect.stringContaining('REDIS_URL')],
    });
    expect(left()).toEqual(['redis-program.lock']);
  });

  it('unsigned packages are refused', async () => {
    const repository = join(dir, 'repository');
    mkdirSync(repository);
    const { status } = spawnSync('apt-get', ['download', 'redis-server'], { cwd: repository });
    expect(status).toBe(0);
    const deb = readdirSync(repository)[0] ?? '';
    const sha256 = (file: string) =>
      spawnSync('sha256sum', [file], { cwd: repository, encoding: 'utf8' }).stdout.slice(0, 64);
    const fields = spawnSync('dpkg-deb', ['-f', deb], { cwd: repository, encoding: 'utf8' }).stdout;
    const packages = `${fields.trim()}\nFilename: ./${deb}\nSHA256: ${sha256(deb)}\n`;
    writeFileSync(join(repository, 'Packages'), packages);
    writeFileSync(join(repository, 'Release'), `SHA256:\n ${sha256('Packages')} ${packages.length} Packages\n`);
    writeFileSync(join(dir, 'sources.list'), `deb file:${repository} ./\n`);
    aptWith(`Dir::Etc::SourceList "${join(dir, 'sources.list')}"`, 'Dir::Etc::SourceParts "/dev/null"');
    await expect(openQueue({ stateDir })).rejects.toMatchObject({
      code: 'missing-program',
      message: expect.stringContaining('is not signed'),
    });
    expect(left()).toEqual(['redis-program.lock']);
  });

  it('and no apt, it is said how this system installs one', async () => {
    process.env['PATH'] = dir;
    await expect(openQueue({ stateDir })).rejects.toMatchObject({
      code: 'missing-program',
      suggestions: [howToInstall(), expect.stringContaining('GRYPHUS_REDIS_SERVER')],
    });
  });
});

/** Resolves when it prints a number. */
function seen(child: ChildProcess, holds: (percent: number) => boolean): Promise<void> {
  return new Promise((done, failed) => {
    child.stdout?.on('data', (bytes: Buffer) => {
      if (String(bytes).split('\n').map(Number).some(holds)) done();
    });
    child.once('exit', (status) => failed(new Error(`it ended with ${status}`)));
  });
}

describe('how Redis is installed', () => {
  it.each([
    ['Debian', 'ID=debian\n', 'sudo apt-get install redis-server`.'],
    ['Mint', 'NAME="Linux Mint"\nID=linuxmint\nID_LIKE="ubuntu debian"\n', 'sudo apt-get install redis-server`.'],
    ['Rocky', 'ID="rocky"\nID_LIKE="rhel centos fedora"\n', 'sudo dnf install redis` (or `valkey`'],
    ['Fedora', 'ID=fedora\nVERSION_ID=43\n', 'sudo dnf install redis` (or `valkey`'],
    ['openSUSE', 'ID="opensuse-leap"\nID_LIKE="suse opensuse"\n', 'sudo zypper install redis`'],
    ['Arch', 'ID=arch\n', 'sudo pacman -S valkey`.'],
    ['Manjaro', "ID='manjaro'\nID_LIKE=arch\n", 'sudo pacman -S valkey`.'],
    ['Alpine', 'ID=alpine\n', 'sudo apk add redis`.'],
  ])('on %s', (_, osRelease, command) => {
    expect(howToInstall(osRelease, 'linux', false)).toContain(`Install it: \`${command}`);
    expect(howToInstall(osRelease, 'linux', true)).toContain(`Install it: \`${command.replace('sudo ', '')}`);
  });

  it('on macOS and elsewhere', () => {
    expect(howToInstall('', 'darwin', false)).toBe('Install it: `brew install redis`.');
    expect(howToInstall('ID=plan9\n', 'linux', false)).toBe("Install Redis with this system's package manager.");
    expect(howToInstall('ID=constructor\n', 'toString', false)).toBe(
      "Install Redis with this system's package manager.",
    );
  });
});
