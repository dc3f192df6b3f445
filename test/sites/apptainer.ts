import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { apptainerPlace } from '../../scripts/apptainer.mjs';
import { expect } from 'vitest';
import { type ContainerEngine, makeArchive, makeRoot } from './container-engine.ts';

const BIN = join(apptainerPlace(), 'bin');

export function skipWithoutApptainer(): boolean {
  return !existsSync(join(BIN, 'apptainer'));
}

/** The real apptainer, without setuid, with an image in a file. */
export class Apptainer implements ContainerEngine {
  readonly dir: string;
  readonly env: NodeJS.ProcessEnv;
  readonly root: string;
  /** The image's path. */
  readonly sif: string;
  readonly image: ContainerEngine['image'];

  readonly #name: string;
  readonly ad = {
    HasContainer: 'true',
    HasDockerURL: 'true',
    HasSIF: 'true',
    HasSingularity: 'true',
    HasSandboxImage: 'true',
    SingularityVersion: expect.stringMatching(/^"1\.\d/),
  };
  readonly keepsList = false;
  readonly version = /^"apptainer 1\.\d/;

  constructor() {
    this.dir = mkdtempSync('/tmp/gry-apptainer-');
    const cache = join(this.dir, 'cache');
    mkdirSync(cache);
    this.env = { ...process.env, PATH: `${BIN}:${process.env['PATH']}`, APPTAINER_CACHEDIR: cache };
    // It replaces what is inside the image's name.
    this.#name = basename(this.dir);
    this.root = join(this.dir, `${this.#name}.root`);
    makeRoot(this.root);
    this.sif = join(this.dir, `${this.#name}.sif`);
    this.image = { kind: 'there', path: this.sif };
    this.run('build', this.sif, this.root);
  }

  run(...args: readonly string[]): string {
    const words = ['--silent', ...args];
    return execFileSync('apptainer', words, { env: this.env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  }

  /** It keeps no list, so this finds the attempts that have processes in its containers. */
  containers(): string[] {
    const keys = readdirSync('/proc').flatMap((pid) => {
      try {
        const environ = /^\d+$/.test(pid) ? readFileSync(`/proc/${pid}/environ`, 'latin1') : '';
        if (!environ.includes(`APPTAINER_NAME=${this.#name}`)) return [];
        return /\0GRYPHUS_KEY=([^\0]*)/.exec(`\0${environ}`)?.[1] ?? [];
      } catch {
        return [];
      }
    });
    return [...new Set(keys)];
  }

  archive(path: string): void {
    makeArchive(this.root, path);
  }

  end(): void {
    rmSync(this.dir, { recursive: true, force: true });
  }
}
