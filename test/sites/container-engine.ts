import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { ContainerSpec } from '../../src/site/contract.ts';

/** Something that starts containers, with a place of its own on this machine and one image, made of this machine's busybox. */
export interface ContainerEngine {
  /** Its directory; in there nothing else is. */
  readonly dir: string;
  /** The surroundings in which a worker finds it, and no other. */
  readonly env: NodeJS.ProcessEnv;
  /** The image as a directory, if it takes such. */
  readonly root?: string | undefined;
  readonly image: ContainerSpec['image'];
  /** The same with the entry point `/bin/echo hello`, where images have such. */
  readonly greets?: ContainerSpec['image'];
  /** It knows of containers that nobody is there for any more; without, they are processes as others. */
  readonly keepsList: boolean;
  /** All containers that there are, running or not. */
  containers(): string[];
  /** Puts the image into an archive, if it takes such. */
  archive?(path: string): void;
  /** What a worker says of it. */
  readonly ad: Readonly<Record<string, string | undefined>>;
  readonly version: RegExp;
  end(): void | Promise<void>;
}

/** That of the image that greets. */
export const ENTRYPOINT = 'ENTRYPOINT ["/bin/echo", "hello"]';

/** What busybox is called in the image. */
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
    return; // It is linked with none.
  }
  for (const [, path = ''] of said.matchAll(/(?:=> )?(\/\S+) \(0x/g))
    put(path, join(root, dirname(path), basename(path)));
}

/** The image that is the directory `root` in an archive, as `docker save` writes it. */
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
