import type { Ending } from '../site/contract.ts';
import { processesOf, signal } from './processes.ts';

/** Kills every process of these attempts, until there is none. */
export async function killAll(keys: ReadonlySet<string>): Promise<void> {
  for (let turn = 0; turn < 50; turn++) {
    const found = processesOf(keys);
    if (found.length === 0) return;
    for (const { pid } of found) signal(pid, 'SIGKILL');
    await new Promise((resume) => setTimeout(resume, 20));
  }
}

/** A look at all processes costs milliseconds: short runs share one, milliseconds. */
const SWEEP_MS = 1000;

/** Looks, soon after short runs ended, for what forked away from them, for many at once. */
export class Sweeper {
  #keys = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  add(key: string): void {
    this.#keys.add(key);
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      const keys = this.#keys;
      this.#keys = new Set();
      void killAll(keys);
    }, SWEEP_MS);
  }

  close(): void {
    clearTimeout(this.#timer);
  }
}

export function evicted(words: string): Ending {
  return { how: { kind: 'by-site', cause: 'preempted', words } };
}

export function cancelled(words: string): Ending {
  return { how: { kind: 'by-site', cause: 'cancelled', words } };
}

export function timeout(seconds: number): Ending {
  return { how: { kind: 'by-site', cause: 'timeout', words: `it ran for ${seconds} s` } };
}

export function outOfMemory(used: number, most: number): Ending {
  return { how: { kind: 'by-site', cause: 'out-of-memory', words: `it used ${used} MB of ${most}` } };
}
