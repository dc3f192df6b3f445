import type { ProcessIdentity } from '../../util/process-identity.ts';
import { type Runner, Shell, STARTER } from './shell.ts';

/**
 * A shell that runs attempts that have their own directories, one after another. It costs one fork per attempt, and
 * completes the attempt it is running even if the worker is gone.
 */
export class Starter implements Runner {
  readonly #shell: Shell;
  #onDone: (() => void) | undefined;
  #text = '';

  /** `script`: the text of starter.sh; `jobsDir`: the parent of the attempts' directories. */
  constructor(script: string, jobsDir: string, env: NodeJS.ProcessEnv) {
    this.#shell = new Shell({
      args: ['-c', script, STARTER],
      cwd: jobsDir,
      env,
      onText: (text) => {
        this.#text += text;
        if (!this.#text.endsWith('\n')) return;
        this.#text = '';
        this.#done();
      },
      onEnd: () => this.#done(),
    });
  }

  get identity(): ProcessIdentity {
    return this.#shell.identity;
  }

  get alive(): boolean {
    return this.#shell.alive;
  }

  /** `key`: the name of the attempt's directory. */
  run(key: string, done: () => void): void {
    this.#onDone = done;
    if (!this.alive) queueMicrotask(() => this.#done());
    else this.#shell.write(`${key}\n`);
  }

  signal(name: NodeJS.Signals): void {
    this.#shell.signal(name);
  }

  end(): void {
    this.#shell.end();
  }

  #done(): void {
    const call = this.#onDone;
    this.#onDone = undefined;
    call?.();
  }
}
