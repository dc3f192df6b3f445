import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

/** Packages with a Redis server, in order of preference. */
const PACKAGES = ['redis-server', 'valkey-server'];
/** Where apt and dpkg keep their state (apt.conf(5): Dir::State::lists, Dir::State::status). */
const SYSTEM_LISTS = '/var/lib/apt/lists';
const SYSTEM_STATUS = '/var/lib/dpkg/status';

/** 0 to 100. */
export type OnPercent = (percent: number) => void;

interface Ended {
  readonly status: number | null;
  /** The most informative error message, or ''. */
  readonly message: string;
}

export function hasApt(): boolean {
  const dirs = (process.env['PATH'] ?? '').split(delimiter).filter((dir) => dir !== '');
  return ['apt-get', 'dpkg'].every((name) => dirs.some((dir) => existsSync(join(dir, name))));
}

/**
 * Downloads the packages of a Redis server, with those dependencies that this system lacks, as .deb files. Uses the
 * system's apt with the system's sources and keys, but with separate lists, cache and dpkg status, so that no root is
 * needed and the system does not change. The files exist until `use` resolves. Rejects with apt's own message.
 */
export async function withDebs<T>(onPercent: OnPercent, use: (files: readonly string[]) => Promise<T>): Promise<T> {
  const dir = mkdtempSync(join(plainTmp(), 'gryphus-apt-'));
  const clean = () => rmSync(dir, { recursive: true, force: true });
  process.once('exit', clean);
  try {
    const archives = await download(dir, onPercent);
    return await use(debsIn(archives).map((name) => join(archives, name)));
  } finally {
    process.removeListener('exit', clean);
    clean();
  }
}

/** Installs the system's Redis package, as root. Rejects with apt's own message. */
export async function aptInstall(onPercent: OnPercent): Promise<void> {
  const options = ['-o', 'DPkg::Lock::Timeout=300'];
  const words = ['install', '--no-install-recommends', '-y'];
  const first = await firstOf((name) => apt([...options, ...words, name], onPercent));
  if (first === '') return;
  const updated = await apt([...options, 'update'], onPercent);
  const second = await firstOf((name) => apt([...options, ...words, name], onPercent));
  if (second !== '') throw new Error(updated.message || second);
}

/** apt talks to its helpers line by line: a newline in a directory's name would make it hang. */
function plainTmp(): string {
  return /^[\w./+-]+$/.test(tmpdir()) ? tmpdir() : '/tmp';
}

/** Returns the directory with the downloaded packages. */
async function download(dir: string, onPercent: OnPercent): Promise<string> {
  for (const name of ['lists/partial', 'archives/partial', 'dpkg']) mkdirSync(join(dir, name), { recursive: true });
  writeFileSync(join(dir, 'dpkg/status'), withoutRedis());
  writeFileSync(join(dir, 'apt.conf'), configuration(dir));
  const archives = join(dir, 'archives');
  const ours = ['-c', join(dir, 'apt.conf')];
  const install = (lists: string, from: number) =>
    firstOf(async (name) => {
      const words = ['-o', `Dir::State::lists=${lists}`, 'install', '--download-only', '--no-install-recommends', '-y'];
      const ended = await apt([...ours, ...words, name], (percent) => onPercent(from + (percent * (95 - from)) / 100));
      return ended.status === 0 && debsIn(archives).length === 0
        ? { status: 1, message: 'apt downloaded nothing' }
        : ended;
    });
  if (hasLists() && (await install(SYSTEM_LISTS, 0)) === '') return archives;
  // There are no lists, as in most container images, or they are outdated.
  const lists = join(dir, 'lists');
  const updated = await apt([...ours, '-o', `Dir::State::lists=${lists}`, 'update'], (percent) =>
    onPercent(percent * 0.6),
  );
  const message = await install(lists, 60);
  if (message !== '') throw new Error(updated.message || message);
  return archives;
}

const debsIn = (dir: string) => readdirSync(dir).filter((name) => name.endsWith('.deb'));

/** Tries the packages in turn until one is available. Returns '' on success, otherwise the error message. */
async function firstOf(get: (name: string) => Promise<Ended>): Promise<string> {
  let message = '';
  for (const name of PACKAGES) {
    const ended = await get(name);
    if (ended.status === 0) return '';
    message ||= ended.message || `apt-get ended with ${ended.status}`;
    if (!/Unable to locate|no installation candidate/.test(ended.message)) break;
  }
  return message;
}

/** apt.conf(5). Disables the hooks that the system runs after its own updates. The names contain no quotes. */
function configuration(dir: string): string {
  const hooks = ['APT::Update::Pre-Invoke', 'APT::Update::Post-Invoke', 'APT::Update::Post-Invoke-Success'];
  const values = {
    'Dir::State': dir,
    'Dir::State::extended_states': join(dir, 'extended_states'),
    'Dir::State::status': join(dir, 'dpkg/status'),
    'Dir::Cache': dir,
    'Dir::Cache::archives': join(dir, 'archives'),
    'Dir::Cache::pkgcache': '',
    'Dir::Cache::srcpkgcache': '',
    'APT::Sandbox::User': 'root',
    'Acquire::GzipIndexes': 'true',
    'Acquire::Languages': 'none',
    'Acquire::Retries': '1',
    'Acquire::http::Timeout': '20',
    'Acquire::https::Timeout': '20',
  };
  const lines = Object.entries(values).map(([name, value]) => `${name} "${value}";`);
  return [...hooks.map((name) => `#clear ${name};`), ...lines, ''].join('\n');
}

function hasLists(): boolean {
  try {
    return readdirSync(SYSTEM_LISTS).some((name) => /_Packages(\.\w+)?$/.test(name));
  } catch {
    return false;
  }
}

/** The system's dpkg status without Redis packages: if one is installed, its program is not on PATH. */
function withoutRedis(): string {
  const text = existsSync(SYSTEM_STATUS) ? readFileSync(SYSTEM_STATUS, 'utf8') : '';
  return text
    .split(/\n\n+/)
    .filter((paragraph) => !/^Package: (redis|valkey)/m.test(paragraph))
    .join('\n\n');
}

/** Runs apt-get, which reports its progress on a separate file descriptor (APT::Status-Fd). */
function apt(words: readonly string[], onPercent: OnPercent): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn('apt-get', ['-q', '-o', 'APT::Status-Fd=3', ...words], {
      stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
      env: { ...process.env, LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' },
    });
    let said = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    child.stdio[3]?.on('data', (bytes: Buffer) => {
      // dlstatus:<files>:<percent>:<words>, pmstatus:<package>:<percent>:<words>
      const percent = /^(?:dl|pm)status:[^:]*:([\d.]+):/.exec(String(bytes).trimEnd().split('\n').at(-1) ?? '')?.[1];
      if (percent !== undefined) onPercent(Number(percent));
    });
    child.once('error', reject);
    child.once('close', (status) => resolve({ status, message: complaint(said) }));
  });
}

/** The first of apt's error messages that states a reason, otherwise the first message. */
function complaint(said: string): string {
  const lines = said.split('\n').flatMap((line) => /^(?:E|Err|W): (.*)/.exec(line)?.[1] ?? []);
  const reason = lines.find((line) =>
    /Failed to fetch|not signed|GPG error|signatures|Release file|No space/i.test(line),
  );
  return (reason ?? lines[0] ?? '').replaceAll(/\s+/g, ' ').trim();
}
