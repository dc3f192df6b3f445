import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CLI, type Ran, type TestAgent, until } from './agent.ts';

/** Whether this process may make machines that share a home. */
export const CAN_SHARE =
  process.getuid?.() === 0 && ['bindfs', 'unshare', 'nsenter'].every((name) => spawnSync('which', [name]).status === 0);
if (!CAN_SHARE)
  process.stderr.write(
    'Tests of a home that two machines share are left out: they need root, and the package bindfs.\n',
  );

/**
 * A machine with a name, a boot and processes of its own, and the agent's home by a mount of its own. As on NFS, the machines see each
 * other's files with some delay, not each other's sockets, and each other's locks only if `locks` are shared.
 */
export class SharingMachine {
  readonly #agent: TestAgent;
  readonly #mount: string;
  readonly #server: ChildProcess;
  #init: ChildProcess | undefined;
  #pid = 0;

  private constructor(agent: TestAgent, mount: string, locks: 'shared' | 'own') {
    this.#agent = agent;
    this.#mount = mount;
    mkdirSync(mount);
    const options = ['-f', '-o', 'attr_timeout=3,entry_timeout=3', '--multithreaded'];
    const forward = locks === 'shared' ? ['--enable-lock-forwarding'] : [];
    this.#server = spawn('bindfs', [...options, ...forward, agent.home, mount], { stdio: 'ignore' });
  }

  static async start(agent: TestAgent, host: string, locks: 'shared' | 'own'): Promise<SharingMachine> {
    const machine = new SharingMachine(agent, join(agent.dir, `mount-${host}`), locks);
    const isMounted = () => spawnSync('mountpoint', ['-q', machine.#mount]).status === 0;
    await until('the mount', () => isMounted() || undefined, 10_000);
    const boot = join(agent.dir, `boot-${host}`);
    writeFileSync(boot, `${host.padEnd(8, '0')}-0000-4000-8000-000000000000\n`);
    const up = join(agent.dir, `up-${host}`);
    const script =
      'hostname "$1" && mount --bind "$2" /proc/sys/kernel/random/boot_id && mount --bind "$3" "$4" && : >"$5"; while :; do sleep 1; done';
    const words = ['--uts', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc', 'sh', '-c', script, 'sh'];
    machine.#init = spawn('unshare', [...words, host, boot, machine.#mount, agent.home, up], { stdio: 'ignore' });
    await until('the machine', () => spawnSync('test', ['-e', up]).status === 0 || undefined, 10_000);
    const of = machine.#init.pid ?? 0;
    machine.#pid = Number(readFileSync(`/proc/${of}/task/${of}/children`, 'utf8').trim());
    return machine;
  }

  /** `gryphus WORDS` there. */
  async run(...words: readonly string[]): Promise<Ran> {
    const { env, work } = this.#agent;
    const child = spawn('nsenter', this.#enter(process.execPath, CLI, ...words), { env, cwd: work });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    child.stdin.end();
    const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
    return { code, stdout, stderr };
  }

  /** The output of a shell command there. */
  sh(command: string): string {
    return execFileSync('nsenter', this.#enter('sh', '-c', command), { encoding: 'utf8' });
  }

  /** Its processes of Gryphus, by their numbers there. */
  daemons(): readonly number[] {
    const found = this.sh(`pgrep -f '[d]ist/|[r]edis-server|[v]alkey-server' || :`).trim();
    return found === '' ? [] : found.split('\n').map(Number);
  }

  /** Stops and continues its daemons, as when it sleeps and wakes. */
  signal(name: 'STOP' | 'CONT'): void {
    this.sh(`kill -${name} ${this.daemons().join(' ')}`);
  }

  /** The power fails. */
  async die(): Promise<void> {
    const init = this.#init;
    if (!init || init.exitCode !== null || init.signalCode !== null) return;
    const gone = new Promise((resolve) => init.once('exit', resolve));
    init.kill('SIGKILL');
    await gone;
  }

  async end(): Promise<void> {
    await this.die();
    spawnSync('umount', ['-l', this.#mount]);
    this.#server.kill('SIGKILL');
  }

  #enter(...words: readonly string[]): string[] {
    return ['--target', String(this.#pid), '--mount', '--uts', '--pid', `--wd=${this.#agent.work}`, '--', ...words];
  }
}
