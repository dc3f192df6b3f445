import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../agent/agent.ts';
import { type ContainerEngine, ENTRYPOINT, makeRoot } from './container-engine.ts';

export function skipWithoutDockerd(): boolean {
  return process.getuid?.() !== 0 || spawnSync('dockerd', ['--version']).status !== 0;
}

/** A real docker daemon with everything in one directory: it changes neither the machine's networks nor its cgroups. */
export class Dockerd implements ContainerEngine {
  readonly dir: string;
  readonly env: NodeJS.ProcessEnv;
  readonly root = undefined;
  readonly image = { kind: 'registry', name: 'docker://tools:1' } as const;
  readonly greets = { kind: 'registry', name: 'docker://greets:1' } as const;
  readonly ad = { HasContainer: 'true', HasDocker: 'true', HasDockerURL: 'true' };
  readonly keepsList = true;
  readonly version = /docker \d/;
  readonly #daemon: ChildProcess;

  private constructor(dir: string) {
    this.dir = dir;
    const socket = `unix://${join(dir, 'sock')}`;
    this.env = { ...process.env, DOCKER_HOST: socket, DOCKER_CONFIG: join(dir, 'config') };
    const words = {
      '--host': socket,
      '--data-root': join(dir, 'data'),
      '--exec-root': join(dir, 'exec'),
      '--pidfile': join(dir, 'pid'),
      '--storage-driver': 'vfs',
      '--bridge': 'none',
    };
    const flags = ['--iptables=false', '--ip6tables=false', '--ip-masq=false', '--containerd='];
    const log = openSync(join(dir, 'log'), 'a');
    const args = [...Object.entries(words).map((pair) => pair.join('=')), ...flags];
    this.#daemon = spawn('dockerd', args, { stdio: ['ignore', log, log], detached: true });
  }

  static async start(): Promise<Dockerd> {
    const made = new Dockerd(mkdtempSync('/tmp/gry-docker-'));
    const answers = () => spawnSync('docker', ['version'], { env: made.env }).status === 0 || undefined;
    try {
      await until('the docker daemon to answer', answers, 60_000);
    } catch (thrown) {
      throw new Error(readFileSync(join(made.dir, 'log'), 'utf8').slice(-2000), { cause: thrown });
    }
    const root = join(made.dir, 'root');
    makeRoot(root);
    const tar = join(made.dir, 'root.tar');
    execFileSync('tar', ['-C', root, '-cf', tar, '.']);
    made.run('import', tar, 'tools:1');
    made.run('import', '--change', ENTRYPOINT, tar, 'greets:1');
    return made;
  }

  run(...args: readonly string[]): string {
    return execFileSync('docker', args, { env: this.env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  }

  containers(): string[] {
    return this.run('ps', '--all', '--format', '{{.Names}}')
      .split('\n')
      .filter((name) => name !== '');
  }

  async end(): Promise<void> {
    for (const name of this.containers()) this.run('rm', '--force', name);
    const ended = new Promise((resolve) => this.#daemon.once('exit', resolve));
    this.#daemon.kill('SIGTERM');
    await ended;
    // What kept containers on the machine's network alive.
    spawnSync('umount', [join(this.dir, 'exec/netns/default')]);
    rmSync(this.dir, { recursive: true, force: true });
  }
}
