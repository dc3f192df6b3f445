import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ContainerEngine, ENTRYPOINT, makeRoot } from './container-engine.ts';

/** A podman with its own store, which contains one image, built from this machine's busybox. */
export class Podman implements ContainerEngine {
  readonly dir: string;
  readonly env: NodeJS.ProcessEnv;
  /** The image as a directory. */
  readonly root: string;
  readonly name = 'localhost/tools:1';
  readonly image = { kind: 'registry', name: `docker://${this.name}` } as const;

  readonly greets = { kind: 'registry', name: 'docker://localhost/greets:1' } as const;
  readonly ad = { HasContainer: 'true', HasDocker: 'true', HasDockerURL: 'true', HasSandboxImage: 'true' };
  readonly keepsList = true;
  readonly version = /^"podman \d/;

  constructor() {
    this.dir = mkdtempSync('/tmp/gry-podman-');
    const conf = join(this.dir, 'storage.conf');
    const store = { graphroot: join(this.dir, 'store'), runroot: join(this.dir, 'run') };
    writeFileSync(conf, `[storage]\ndriver = "vfs"\n${toml(store)}`);
    // crun does not work with cgroup v1 and v2 at once, and not every root may raise a limit.
    const engine = join(this.dir, 'containers.conf');
    const limits = '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=32768:32768"]\n';
    writeFileSync(engine, `[engine]\nruntime = "runc"\n${limits}`);
    this.env = { ...process.env, CONTAINERS_STORAGE_CONF: conf, CONTAINERS_CONF: engine };
    this.root = join(this.dir, 'root');
    makeRoot(this.root);
    const tar = join(this.dir, 'root.tar');
    execFileSync('tar', ['-C', this.root, '-cf', tar, '.']);
    this.run('import', '--quiet', tar, this.name);
    this.run('import', '--quiet', '--change', ENTRYPOINT, tar, 'localhost/greets:1');
  }

  run(...args: readonly string[]): string {
    return execFileSync('podman', args, { env: this.env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  }

  /** All that exist, running or not. */
  containers(): string[] {
    return this.run('ps', '--all', '--format', '{{.Names}}')
      .split('\n')
      .filter((name) => name !== '');
  }

  archive(path: string): void {
    this.run('save', '--quiet', '--format', 'oci-archive', '--output', path, this.name);
  }

  end(): void {
    this.run('rm', '--all', '--force', '--time', '0');
    rmSync(this.dir, { recursive: true, force: true });
  }
}

function toml(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name} = ${JSON.stringify(value)}\n`)
    .join('');
}
