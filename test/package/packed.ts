import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { downloadEnv } from '../download-env.ts';

export const ROOT = resolve(import.meta.dirname, '../..');

/** The working tree without what git ignores, with a link to its modules. */
export function copyTree(to: string): void {
  const names = execFileSync('git', ['ls-files', '-coz', '--exclude-standard', '--deduplicate'], { cwd: ROOT });
  const copy = 'tar -c --null --ignore-failed-read -T - | tar -x -C "$1"';
  execFileSync('sh', ['-c', copy, 'sh', to], { cwd: ROOT, input: names, stdio: ['pipe', 'ignore', 'ignore'] });
  symlinkSync(join(ROOT, 'node_modules'), join(to, 'node_modules'));
}

/** The package as it is published: packed, and therefore built, in a copy of the working tree. */
export class Packed {
  readonly dir = mkdtempSync('/tmp/gpk-');
  /** The path of the tarball. */
  readonly tarball: string;

  constructor() {
    const tree = join(this.dir, 'tree');
    const out = join(this.dir, 'out');
    for (const dir of [tree, out]) mkdirSync(dir);
    copyTree(tree);
    npmOk(tree, 'pack', '--pack-destination', out);
    rmSync(tree, { recursive: true });
    const [name = ''] = readdirSync(out);
    this.tarball = join(out, name);
  }

  end(): void {
    rmSync(this.dir, { recursive: true, force: true });
  }
}

export function npmOk(cwd: string, ...args: string[]): void {
  const { status, stderr } = spawnSync('npm', args, { cwd, env: downloadEnv(), encoding: 'utf8' });
  if (status !== 0) throw new Error(`npm ${args.join(' ')}: ${stderr}`);
}

/** The sum of the files' sizes below a directory, and of the blocks that they take on a disk, in bytes. */
export function sizesOf(dir: string): { readonly bytes: number; readonly blocks: number } {
  const out = execFileSync('find', [dir, '-type', 'f', '-printf', '%s %b\n'], { encoding: 'utf8', maxBuffer: 1 << 24 });
  let bytes = 0;
  let blocks = 0;
  for (const line of out.split('\n').filter((one) => one !== '')) {
    const [size, count] = line.split(' ').map(Number);
    bytes += size ?? 0;
    blocks += (count ?? 0) * 512;
  }
  return { bytes, blocks };
}
