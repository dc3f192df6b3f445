import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { accountOf } from '../../src/pool/host/accounts.ts';
import { signal } from '../../src/pool/host/processes.ts';

const BIN = resolve(import.meta.dirname, '../../dist/bin/gryphus.js');

/** The pool of a Unix user of its own. */
export class UsersPool {
  readonly user: string;
  readonly home: string;
  readonly work: string;
  readonly port: number;
  /** The words before each of its programs. */
  readonly #within: readonly string[];

  constructor(user: string, dir: string, port: number, within: readonly string[] = []) {
    this.user = user;
    this.port = port;
    this.#within = within;
    if (!accountOf(user)) execFileSync('useradd', ['--create-home', '--home-dir', join(dir, user), user]);
    const { uid, gid } = accountOf(user) ?? { uid: -1, gid: -1 };
    this.home = join(dir, `${user}-agent`);
    this.work = join(dir, `${user}-work`);
    for (const path of [this.home, this.work]) {
      mkdirSync(path, { recursive: true, mode: 0o700 });
      chownSync(path, uid, gid);
    }
  }

  run(...words: string[]): { readonly status: number | null; readonly stdout: string; readonly stderr: string } {
    const env = { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', GRYPHUS_HOME: this.home, HOME: this.work };
    const [program = '', ...more] = this.words(process.execPath, BIN, ...words);
    return spawnSync(program, more, {
      cwd: this.work,
      env,
      encoding: 'utf8',
      timeout: 120_000,
    });
  }

  ok(...words: string[]): string {
    const { status, stdout, stderr } = this.run(...words);
    if (status !== 0) throw new Error(`gryphus ${words.join(' ')}: ${status} ${stdout}${stderr}`);
    return stdout;
  }

  /** A command line, so that its user runs it where the pool is. */
  words(...command: readonly string[]): string[] {
    const { uid, gid } = accountOf(this.user) ?? { uid: -1, gid: -1 };
    return [...this.#within, 'setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', '--', ...command];
  }

  file(name: string, text: string, mode = 0o644): string {
    const path = join(this.work, name);
    writeFileSync(path, text);
    chmodSync(path, mode);
    return this.own(path);
  }

  /** Makes a file its user's. */
  own(path: string): string {
    const { uid, gid } = accountOf(this.user) ?? { uid: -1, gid: -1 };
    chownSync(path, uid, gid);
    return path;
  }

  /** '' if there is no such file yet. */
  read(name: string): string {
    const path = join(this.work, name);
    return existsSync(path) ? readFileSync(path, 'utf8') : '';
  }

  /** Kills a daemon as a power failure would. */
  kill(what: 'flock/gateway.pid' | 'pool/central-manager.pid' | 'pool/worker/worker.pid'): void {
    const file = join(this.home, 'state', what);
    if (!existsSync(file)) return;
    try {
      process.kill(Number(JSON.parse(readFileSync(file, 'utf8')).pid), 'SIGKILL');
    } catch {
      // It is between two lives.
    }
  }

  end(): void {
    this.run('rm', '--all');
    this.run('down');
    const own = accountOf(this.user)?.uid;
    const [, first, count] =
      new RegExp(`^${this.user}:(\\d+):(\\d+)$`, 'm').exec(readFileSync('/etc/subuid', 'utf8')) ?? [];
    const isOurs = (uid: number) => uid === own || (uid >= Number(first) && uid < Number(first) + Number(count));
    for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
      const uid = statSync(join('/proc', name), { throwIfNoEntry: false })?.uid;
      if (uid !== undefined && isOurs(uid)) signal(Number(name), 'SIGKILL');
    }
    // Where its worker was killed, it has left what it had there.
    rmSync(`/var/tmp/gryphus-${own}`, { recursive: true, force: true });
    spawnSync('userdel', [this.user]);
  }
}
