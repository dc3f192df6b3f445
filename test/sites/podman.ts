import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

/** What busybox is called in the image. */
const TOOLS = [
  'sh',
  'cat',
  'echo',
  'env',
  'head',
  'id',
  'kill',
  'ls',
  'printf',
  'pwd',
  'sleep',
  'setsid',
  'test',
  'touch',
  'tr',
  'true',
];

/** A podman with a store of its own, in which there is one image, made of this machine's busybox. */
export class Podman {
  readonly dir: string;
  readonly env: NodeJS.ProcessEnv;
  /** The image as a directory. */
  readonly root: string;
  readonly image = 'localhost/tools:1';

  constructor() {
    this.dir = mkdtempSync('/tmp/gry-podman-');
    const conf = join(this.dir, 'storage.conf');
    const store = { graphroot: join(this.dir, 'store'), runroot: join(this.dir, 'run') };
    writeFileSync(conf, `[storage]\ndriver = "vfs"\n${toml(store)}`);
    // crun does not do with two generations of cgroups at once, and not every root may raise a limit.
    const engine = join(this.dir, 'containers.conf');
    const limits = '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=32768:32768"]\n';
    writeFileSync(engine, `[engine]\nruntime = "runc"\n${limits}`);
    this.env = { ...process.env, CONTAINERS_STORAGE_CONF: conf, CONTAINERS_CONF: engine };
    this.root = join(this.dir, 'root');
    makeRoot(this.root);
    const tar = join(this.dir, 'root.tar');
    execFileSync('tar', ['-C', this.root, '-cf', tar, '.']);
    this.run('import', '--quiet', tar, this.image);
  }

  run(...args: readonly string[]): string {
    return execFileSync('podman', args, { env: this.env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  }

  /** All that there are, running or not. */
  containers(): string[] {
    return this.run('ps', '--all', '--format', '{{.Names}}')
      .split('\n')
      .filter((name) => name !== '');
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

/** busybox, under its tools' names, with the libraries that it was linked with. */
function makeRoot(root: string): void {
  const put = (from: string, to: string) => {
    mkdirSync(dirname(to), { recursive: true });
    copyFileSync(from, to);
  };
  put('/bin/busybox', join(root, 'bin/busybox'));
  for (const tool of TOOLS) symlinkSync('busybox', join(root, 'bin', tool));
  for (const name of ['tmp', 'proc', 'sys', 'dev', 'etc']) mkdirSync(join(root, name));
  let said = '';
  try {
    said = execFileSync('ldd', ['/bin/busybox'], { encoding: 'utf8' });
  } catch {
    return; // It is linked with none.
  }
  for (const [, path = ''] of said.matchAll(/(?:=> )?(\/\S+) \(0x/g))
    put(path, join(root, dirname(path), basename(path)));
}
