import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { PORT_NEWS } from '../pool/port-news.ts';

const AGAIN_MS = 3000;
/** How often the log says that the port is not available, milliseconds. */
const REPORT_MS = 60_000;

/** Manages the process that listens on the agent's port for workers. */
export class PortKeeper {
  readonly #log: (message: string, facts?: object) => void;
  #child: ChildProcess | undefined;
  #listen: string | undefined;
  #endedAt = Number.NEGATIVE_INFINITY;
  #reportedAt = Number.NEGATIVE_INFINITY;
  #leaving = false;

  constructor(log: (message: string, facts?: object) => void) {
    this.#log = log;
  }

  /** Sets the address to listen on; `undefined`: none. Called repeatedly, and restarts the process if it has ended. */
  want(listen: string | undefined): void {
    if (listen !== this.#listen) this.close();
    this.#listen = listen;
    if (listen === undefined || this.#leaving || this.#child || performance.now() - this.#endedAt < AGAIN_MS) return;
    const child = fork(fileURLToPath(new URL('../pool/port-main.js', import.meta.url)), [listen], {
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    const gone = (): void => {
      if (this.#child !== child) return;
      this.#child = undefined;
      this.#endedAt = performance.now();
    };
    child.on('message', (message) => {
      const news = PORT_NEWS.parse(message);
      if ('port' in news) this.#log('workers can connect', { listen, port: news.port, process: child.pid });
      else this.#trouble(news.error);
    });
    child.once('error', (error) => {
      this.#trouble(error.message);
      gone();
    });
    child.once('exit', gone);
    this.#child = child;
  }

  /** From now on, a process that ends is not replaced. */
  leave(): void {
    this.#leaving = true;
  }

  close(): void {
    this.#child?.kill('SIGKILL');
    this.#child = undefined;
  }

  #trouble(message: string): void {
    if (performance.now() - this.#reportedAt > REPORT_MS) this.#log(message);
    this.#reportedAt = performance.now();
  }
}
