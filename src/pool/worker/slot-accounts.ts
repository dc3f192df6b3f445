import { linkSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { workerOf } from '../host/pid-files.ts';
import { processesOfAccount } from '../host/processes.ts';

/** Where the workers of root's agents on this machine say which accounts they use. */
const SLOT_ACCOUNTS = '/var/lib/gryphus/accounts';

interface SlotAccount {
  readonly name: string;
  readonly uid: number;
}

/**
 * The accounts `slot1_1`, `slot1_2`, … that this worker uses. All processes of such an account are killed when its job
 * ends, so no two workers of a machine may use one at the same time: a file, made before the first use, names the
 * directory of the worker. It counts while that worker lives, and while anything runs under the account.
 */
export class SlotAccounts {
  readonly #workerDir: string;
  readonly #dir: string;

  constructor(workerDir: string, dir = SLOT_ACCOUNTS) {
    this.#workerDir = workerDir;
    this.#dir = dir;
  }

  /** Whether this worker may use it from now on. Throws if that cannot be recorded. */
  take({ name, uid }: SlotAccount): boolean {
    const file = join(this.#dir, name);
    const holder = holderIn(file);
    if (holder === this.#workerDir) return true;
    if (processesOfAccount(uid).length > 0) return false;
    if (holder !== undefined && (workerOf(holder) || !setAside(file, holder))) return false;
    return this.#make(file);
  }

  /** Gives up those of this worker that no job here uses. */
  release(isUsed: (name: string) => boolean = () => false): void {
    for (const name of namesIn(this.#dir)) {
      const file = join(this.#dir, name);
      if (!isUsed(name) && holderIn(file) === this.#workerDir) rmSync(file, { force: true });
    }
  }

  #make(file: string): boolean {
    mkdirSync(this.#dir, { recursive: true, mode: 0o755 });
    const mine = ownName(file);
    writeFileSync(mine, this.#workerDir, { mode: 0o600 });
    try {
      linkSync(mine, file);
      return true;
    } catch {
      // Another worker was faster.
      return false;
    } finally {
      rmSync(mine, { force: true });
    }
  }
}

/** Removes the file of a worker that is gone, unless another has taken its place meanwhile. */
function setAside(file: string, holder: string): boolean {
  const aside = ownName(file);
  try {
    renameSync(file, aside);
    if (holderIn(aside) === holder) return true;
    linkSync(aside, file);
    return false;
  } catch {
    return false;
  } finally {
    rmSync(aside, { force: true });
  }
}

function ownName(file: string): string {
  return `${file}.${process.pid}`;
}

function holderIn(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

function namesIn(dir: string): readonly string[] {
  try {
    return readdirSync(dir).filter((name) => /^slot1_\d+$/.test(name));
  } catch {
    return [];
  }
}
