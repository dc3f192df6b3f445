import { type ChildProcess, spawn } from 'node:child_process';
import { readlinkSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { childrenOf } from '../../../src/pool/host/processes.ts';
import { until } from '../../agent/agent.ts';

/** Somebody at a terminal of their own, whose keys a program reads. */
export class Typist {
  readonly #script: ChildProcess;
  #keys: NodeJS.Timeout | undefined;

  constructor(env: NodeJS.ProcessEnv = {}) {
    this.#script = spawn('script', ['-qec', 'cat', '/dev/null'], {
      stdio: ['pipe', 'ignore', 'ignore'],
      env: { ...process.env, ...env },
    });
  }

  /** The terminal's name, as `pts/3`. */
  async terminal(): Promise<string> {
    return until('the terminal', () => {
      for (const shell of childrenOf(this.#script.pid ?? 0))
        for (const pid of [shell, ...childrenOf(shell)]) {
          try {
            const name = readlinkSync(`/proc/${pid}/fd/0`);
            if (name.startsWith('/dev/pts/')) return name.slice('/dev/'.length);
          } catch {
            // It is not there yet.
          }
        }
      return undefined;
    });
  }

  press(): void {
    this.#script.stdin?.write('x\n');
  }

  /** Presses a key again and again, until `rest`. */
  type(): void {
    this.press();
    this.#keys ??= setInterval(() => this.press(), 500);
  }

  rest(): void {
    clearInterval(this.#keys);
    this.#keys = undefined;
  }

  async end(): Promise<void> {
    this.rest();
    this.#script.stdin?.end();
    this.#script.kill('SIGKILL');
    await delay(10);
  }
}
