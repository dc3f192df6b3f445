import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { Client, SFTPWrapper } from 'ssh2';
import { asError, GryphusError } from '../errors.ts';
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
import { Limiter } from './limiter.ts';
import { LocalFiles } from './local-files.ts';
import { RemoteShell } from './remote-shell.ts';
import { ShellFiles } from './shell-files.ts';
import { type ConnectContext, connectSsh2 } from './ssh2-connect.ts';
import { exec, isRefusal, startSftp } from './ssh2-channel.ts';
import { SftpFiles } from './ssh2-sftp.ts';
import { readStraight } from './ssh2-sftp-data.ts';
import { START_MS, startedInTime } from './start-limit.ts';
import type { SshSettings } from './ssh-settings.ts';
import { listenBySsh2 } from './ssh2-listen.ts';
import { type FileSide, transfer } from './transfer.ts';
import { shellQuote } from '../util/shell-quote.ts';

/** Well below sshd's default MaxSessions of 10, since channels that are closing still count. */
const CHANNELS = 8;
/** How long to retry a refused channel, and to keep an unused SFTP session. */
const REFUSED_FOR_MS = 20_000;
const SFTP_IDLE_MS = 5_000;

interface Connection {
  readonly client: Client;
  readonly limiter: Limiter;
  lost: Error | undefined;
  sftp: Promise<SFTPWrapper | undefined> | undefined;
  sftpUsers: number;
}

/** A machine reached through one SSH connection of ssh2, made at first use and again after a loss. */
export class Ssh2Transport implements Transport {
  readonly label: string;
  readonly #settings: SshSettings;
  readonly #context: ConnectContext;
  readonly #startMs: number;
  readonly #shell: RemoteShell;
  readonly #byShell: ShellFiles;
  readonly #here = new LocalFiles();
  readonly #listeners = new Set<(reason: Error) => void>();
  #connection: Promise<Connection> | undefined;
  #closed = false;

  constructor(label: string, settings: SshSettings, context: ConnectContext & { readonly startMs?: number }) {
    this.label = label;
    this.#settings = settings;
    this.#context = context;
    this.#startMs = context.startMs ?? START_MS;
    this.#shell = new RemoteShell(label, (line) => this.#exec(line), 'exec', this.#startMs);
    this.#byShell = new ShellFiles(label, this.#shell);
  }

  run(command: string, options?: RunOptions): Promise<RunResult> {
    return this.#shell.run(command, options);
  }

  open(command: string): Promise<Channel> {
    return this.#shell.open(command);
  }

  put(localPath: string, remotePath: string, options?: PutOptions): Promise<void> {
    return this.#withFiles((files) => transfer('put', this.#here, localPath, files, remotePath, options));
  }

  get(remotePath: string, localPath: string, options?: TransferOptions): Promise<void> {
    return this.#withFiles((files) => transfer('get', files, remotePath, this.#here, localPath, options));
  }

  async listen(at: ListenAt, onStream: (stream: Duplex) => void): Promise<Listening> {
    if (at.kind === 'socket') await this.#shell.run(`rm -f -- ${shellQuote(at.path)}`);
    const { client } = await this.#connect();
    return listenBySsh2(client, this.label, at, onStream);
  }

  onLost(listener: (reason: Error) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async close(): Promise<void> {
    this.#closed = true;
    const connecting = this.#connection;
    this.#connection = undefined;
    const connection = await connecting?.catch(() => undefined);
    connection?.client.end();
  }

  #connect(): Promise<Connection> {
    if (this.#closed) return Promise.reject(new GryphusError('site-unreachable', `${this.label} was closed.`));
    if (this.#connection !== undefined) return this.#connection;
    const connecting: Promise<Connection> = connectSsh2(this.#settings, this.#context).then((client) =>
      this.#watch(client, connecting),
    );
    this.#connection = connecting;
    connecting.catch(() => {
      if (this.#connection === connecting) this.#connection = undefined;
    });
    return connecting;
  }

  #watch(client: Client, connecting: Promise<Connection>): Connection {
    const connection: Connection = {
      client,
      limiter: new Limiter(CHANNELS),
      lost: undefined,
      sftp: undefined,
      sftpUsers: 0,
    };
    let reason: Error | undefined;
    client.on('error', (error) => {
      reason = error;
    });
    client.once('close', () => {
      connection.lost = reason ?? new Error('the connection was closed');
      if (this.#connection === connecting) this.#connection = undefined;
      if (!this.#closed) for (const listener of this.#listeners) listener(connection.lost);
    });
    return connection;
  }

  /** Starts a command line in a channel; waits for a free one, and retries if the server refuses it. */
  async #exec(line: string): Promise<Channel> {
    const connection = await this.#connect();
    this.#endIdleSftp(connection, connection.limiter.full);
    const release = await connection.limiter.acquire();
    try {
      const channel = await this.#refusedAgain(connection, () => {
        const opening = exec(connection.client, line, () => connection.lost);
        const giveUp = (): void =>
          void opening.then(
            (late) => late.kill(),
            () => undefined,
          );
        return startedInTime(opening, { label: this.label, limitMs: this.#startMs, said: () => '', giveUp });
      });
      void channel.closed.then(release);
      return channel;
    } catch (thrown) {
      release();
      throw this.#fault(thrown);
    }
  }

  /**
   * A server with a low MaxSessions refuses a channel while the connection stays usable; fewer are used from then on.
   */
  async #refusedAgain<T>(connection: Connection, ask: () => Promise<T>): Promise<T> {
    const until = Date.now() + REFUSED_FOR_MS;
    for (let pause = 20; ; pause = Math.min(1000, pause * 2)) {
      try {
        return await ask();
      } catch (thrown) {
        if (!isRefusal(thrown) || connection.lost !== undefined) throw thrown;
        if (Date.now() > until) throw this.#busy(thrown);
        connection.limiter.shrink(connection.limiter.held - 1);
        await delay(pause * (0.5 + Math.random()));
      }
    }
  }

  async #withFiles(work: (files: FileSide) => Promise<void>): Promise<void> {
    const connection = await this.#connect();
    connection.sftpUsers++;
    try {
      const sftp = await this.#sftp(connection);
      await work(sftp === undefined ? this.#byShell : new SftpFiles(sftp, this.#shell, this.#byShell));
    } catch (thrown) {
      throw this.#fault(thrown);
    } finally {
      connection.sftpUsers--;
      if (connection.limiter.full) this.#endIdleSftp(connection, true);
      setTimeout(() => this.#endIdleSftp(connection, true), SFTP_IDLE_MS).unref();
    }
  }

  /** The only SFTP session of a connection; undefined if there is no such subsystem, or no channel to spare for it. */
  #sftp(connection: Connection): Promise<SFTPWrapper | undefined> {
    if (connection.limiter.limit === 1) return Promise.resolve(undefined);
    connection.sftp ??= this.#startSftp(connection).catch((thrown: unknown) => {
      if (connection.lost !== undefined || isRefusal(thrown) || thrown instanceof GryphusError) {
        connection.sftp = undefined;
        throw thrown;
      }
      return undefined;
    });
    return connection.sftp;
  }

  async #startSftp(connection: Connection): Promise<SFTPWrapper> {
    const release = await connection.limiter.acquire();
    try {
      const sftp = await this.#refusedAgain(connection, () => startSftp(connection.client));
      sftp.on('error', () => undefined);
      readStraight(sftp);
      sftp.once('close', () => {
        connection.sftp = undefined;
        release();
      });
      return sftp;
    } catch (thrown) {
      release();
      throw thrown;
    }
  }

  #endIdleSftp(connection: Connection, now: boolean): void {
    if (!now || connection.sftpUsers > 0 || connection.lost !== undefined) return;
    void connection.sftp?.then(
      (sftp) => sftp?.end(),
      () => undefined,
    );
  }

  #busy(cause: unknown): GryphusError {
    return new GryphusError(
      'site-busy',
      `${this.label} does not allow more sessions on one connection (MaxSessions).`,
      {
        cause,
        suggestions: ['Ask the site for a MaxSessions of 4 or more.'],
      },
    );
  }

  #fault(thrown: unknown): GryphusError {
    if (thrown instanceof GryphusError) return thrown;
    const cause = asError(thrown);
    return new GryphusError('site-unreachable', `The connection to ${this.label} was lost: ${cause.message}.`, {
      cause,
    });
  }
}
