import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { ContainerSpec } from '../../src/site/contract.ts';

/** A container runtime with its own directory on this machine and one image, built from this machine's busybox. */
export interface ContainerEngine {
  /** Its directory, which contains nothing else. */
  readonly dir: string;
  /** The environment in which a worker finds it, and no other runtime. */
  readonly env: NodeJS.ProcessEnv;
  /** The image as a directory, if it accepts one. */
  readonly root?: string | undefined;
  readonly image: ContainerSpec['image'];
  /** The same with the entry point `/bin/echo hello`, if images have one. */
  readonly greets?: ContainerSpec['image'];
  /** It knows of containers whose client is gone; without this, they are ordinary processes. */
  readonly keepsList: boolean;
  /** All existing containers, running or not. */
  containers(): string[];
  /** Writes the image to an archive, if it accepts one. */
  archive?(path: string): void;
  /** What a worker reports about it. */
  readonly ad: Readonly<Record<string, string | undefined>>;
  readonly version: RegExp;
  end(): void | Promise<void>;
}

/** That of the image that greets. */
export const ENTRYPOINT = 'ENTRYPOINT ["/bin/echo", "hello"]';

/** The name of busybox in the image. */
const TOOLS = [
  'sh',
  'cat',
  'echo',
  'env',
  'grep',
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

/** busybox, under its tools' names, with the libraries that it was linked with. */
export function makeRoot(root: string): void {
  const put = (from: string, to: string) => {
    mkdirSync(dirname(to), { recursive: true });
    copyFileSync(from, to);
  };
  put('/bin/busybox', join(root, 'bin/busybox'));
  for (const tool of TOOLS) symlinkSync('busybox', join(root, 'bin', tool));
  for (const name of ['tmp', 'var/tmp', 'proc', 'sys', 'dev', 'etc']) mkdirSync(join(root, name), { recursive: true });
  let said = '';
  try {
    said = execFileSync('ldd', ['/bin/busybox'], { encoding: 'utf8' });
  } catch {
    return; // It is statically linked.
  }
  for (const [, path = ''] of said.matchAll(/(?:=> )?(\/\S+) \(0x/g))
    put(path, join(root, dirname(path), basename(path)));
}

/** An archive of the image in the directory `root`, as `docker save` writes it. */
export function makeArchive(root: string, path: string): void {
  const dir = mkdtempSync(join(dirname(path), 'archive-'));
  execFileSync('tar', ['-C', root, '-cf', join(dir, 'layer.tar'), '.']);
  const digest = createHash('sha256')
    .update(readFileSync(join(dir, 'layer.tar')))
    .digest('hex');
  const config = {
    architecture: 'amd64',
    os: 'linux',
    config: { Env: ['PATH=/bin'], Cmd: ['/bin/sh'] },
    rootfs: { type: 'layers', diff_ids: [`sha256:${digest}`] },
  };
  writeFileSync(join(dir, 'config.json'), JSON.stringify(config));
  const manifest = [{ Config: 'config.json', RepoTags: ['tools:2'], Layers: ['layer.tar'] }];
  writeFileSync(join(dir, 'manifest.json'), JSON.stringify(manifest));
  execFileSync('tar', ['-C', dir, '-cf', path, 'manifest.json', 'config.json', 'layer.tar']);
  rmSync(dir, { recursive: true });
}
