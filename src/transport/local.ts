import { homedir } from 'node:os';
import type { Duplex } from 'node:stream';
import { FOR_SITE, only } from '../util/environments.ts';
import { fileError, transfer } from './transfer.ts';
import type {
  Channel,
  ListenAt,
  Listening,
  PutOptions,
  RunOptions,
  RunResult,
  Transport,
  TransferOptions,
} from './contract.ts';
import { spawnChannel } from './local-channel.ts';
import { LocalFiles } from './local-files.ts';
import { listenHere } from './local-listen.ts';
import { runChannel } from './run-channel.ts';

/**
 * This machine as a site: commands are children of this process, run by /bin/sh in the home directory. Of its
 * environment they see what any log-in would give them, and nothing specific to this process.
 */
export class LocalTransport implements Transport {
  readonly label = 'local';
  readonly #here = new LocalFiles();
  readonly #there: LocalFiles;
  readonly #home: string;

  constructor(home: string = homedir()) {
    this.#home = home;
    this.#there = new LocalFiles(home);
  }

  run(command: string, options?: RunOptions): Promise<RunResult> {
    return runChannel(() => this.open(command), command, this.label, options);
  }

  async open(command: string): Promise<Channel> {
    try {
      return await spawnChannel('/bin/sh', ['-c', command], { cwd: this.#home, env: only(process.env, FOR_SITE) });
    } catch (thrown) {
      throw fileError(this.label, 'run a command in', this.#home, thrown);
    }
  }

  put(localPath: string, remotePath: string, options?: PutOptions): Promise<void> {
    return transfer('put', this.#here, localPath, this.#there, remotePath, options);
  }

  get(remotePath: string, localPath: string, options?: TransferOptions): Promise<void> {
    return transfer('get', this.#there, remotePath, this.#here, localPath, options);
  }

  listen(at: ListenAt, onStream: (stream: Duplex) => void): Promise<Listening> {
    return listenHere(at, onStream);
  }

  onLost(): () => void {
    return () => undefined;
  }

  async close(): Promise<void> {}
}
