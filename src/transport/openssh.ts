import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { type Duplex, PassThrough } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { GryphusError } from '../errors.ts';
import type {
  Channel,
  ChannelEnd,
  ListenAt,
  Listening,
  PutOptions,
  RunOptions,
  RunResult,
  Transport,
  TransferOptions,
} from './contract.ts';
import type { SshEndpoint } from './endpoint.ts';
import { Passphrases } from './askpass.ts';
import { Limiter } from './limiter.ts';
import { spawnChannel } from './local-channel.ts';
import { LocalFiles } from './local-files.ts';
import { isSessionRefusal, wasDropped } from './openssh-errors.ts';
import { listenByOpenssh } from './openssh-listen.ts';
import { type Master, type MasterOptions, startMaster } from './openssh-master.ts';
import { RemoteShell } from './remote-shell.ts';
import { ShellFiles } from './shell-files.ts';
import type { SshSettings } from './ssh-settings.ts';
import { START_MS, startedInTime } from './start-limit.ts';
import { shellQuote } from '../util/shell-quote.ts';
import { transfer } from './transfer.ts';

const CHANNELS = 8;
const REFUSED_FOR_MS = 20_000;
/** sshd drops random connections when many arrive at once (MaxStartups), so a dropped one is tried again. */
const DROPPED_TRIES = 4;
const MOST_WORDS = 4096;

interface Connection {
  readonly master: Master;
  readonly limiter: Limiter;
}

/**
 * A machine reached through the system's ssh: one `ssh -M`, started at first use and again after a loss, with a channel
 * of it for each command. It supports all that OpenSSH does. A command ended by a signal shows as exit status 128 +
 * signal because ssh does not report signals.
 */
export class OpensshTransport implements Transport {
  readonly label: string;
  readonly #endpoint: SshEndpoint;
  readonly #settings: SshSettings;
  readonly #options: MasterOptions;
  readonly #startMs: number;
  readonly #shell: RemoteShell;
  readonly #here = new LocalFiles();
  readonly #there: ShellFiles;
  readonly #passphrases = new Passphrases();
  readonly #listeners = new Set<(reason: Error) => void>();
  #connection: Promise<Connection> | undefined;
  #closed = false;

  constructor(
    label: string,
    endpoint: SshEndpoint,
    settings: SshSettings,
    options: MasterOptions & { readonly startMs?: number } = {},
  ) {
    this.label = label;
    this.#endpoint = endpoint;
    this.#settings = settings;
    this.#options = options;
    this.#startMs = options.startMs ?? START_MS;
    this.#shell = new RemoteShell(label, (line) => this.#exec(line), 'wait', this.#startMs);
    this.#there = new ShellFiles(label, this.#shell);
  }

  run(command: string, options?: RunOptions): Promise<RunResult> {
    return this.#shell.run(command, options);
  }

  open(command: string): Promise<Channel> {
    return this.#shell.open(command);
  }

  put(localPath: string, remotePath: string, options?: PutOptions): Promise<void> {
    return transfer('put', this.#here, localPath, this.#there, remotePath, options);
  }

  get(remotePath: string, localPath: string, options?: TransferOptions): Promise<void> {
    return transfer('get', this.#there, remotePath, this.#here, localPath, options);
  }

  async listen(at: ListenAt, onStream: (stream: Duplex) => void): Promise<Listening> {
    if (at.kind === 'socket') await this.#shell.run(`rm -f -- ${shellQuote(at.path)}`);
    const { master } = await this.#connect();
    return listenByOpenssh(master, this.label, at, onStream);
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
    connection?.master.close();
    await connection?.master.lost;
  }

  #connect(): Promise<Connection> {
    if (this.#closed) return Promise.reject(new GryphusError('site-unreachable', `${this.label} was closed.`));
    if (this.#connection !== undefined) return this.#connection;
    const connecting = this.#start();
    this.#connection = connecting;
    void this.#watch(connecting);
    return connecting;
  }

  async #watch(connecting: Promise<Connection>): Promise<void> {
    const reason = await connecting.then(
      ({ master }) => master.lost,
      () => undefined,
    );
    if (this.#connection === connecting) this.#connection = undefined;
    if (reason !== undefined && !this.#closed) for (const listener of this.#listeners) listener(reason);
  }

  async #start(): Promise<Connection> {
    const { prompt, ...options } = this.#options;
    const asking = prompt === undefined ? {} : { prompt: this.#passphrases.before(prompt) };
    for (let tries = 1; ; tries++) {
      try {
        const master = await startMaster(this.label, this.#endpoint, this.#settings, { ...options, ...asking });
        return { master, limiter: new Limiter(CHANNELS) };
      } catch (thrown) {
        if (!wasDropped(thrown) || tries === DROPPED_TRIES) throw thrown;
        await delay(100 * 3 ** tries * (0.5 + Math.random()));
      }
    }
  }

  async #exec(line: string): Promise<Channel> {
    const until = Date.now() + REFUSED_FOR_MS;
    for (let pause = 20; ; pause = Math.min(1000, pause * 2)) {
      const connection = await this.#connect();
      const release = await connection.limiter.acquire();
      const channel = await this.#channel(connection, line).catch((thrown: unknown) => {
        release();
        throw thrown;
      });
      void channel.closed.then(release);
      const refused = await startedInTime(refusal(channel), {
        label: this.label,
        limitMs: this.#startMs,
        said: () => channel.said(),
        giveUp: () => channel.kill(),
      });
      if (refused === undefined) return channel;
      if (connection.master.gone) continue;
      if (Date.now() > until) {
        throw new GryphusError(
          'site-busy',
          `${this.label} does not allow more sessions on one connection: ${refused}.`,
          {
            suggestions: ['Ask the site for a MaxSessions of 4 or more.'],
          },
        );
      }
      connection.limiter.shrink(connection.limiter.held);
      await delay(pause * (0.5 + Math.random()));
    }
  }

  /** A client of the master. The failing ProxyCommand keeps it from ever making a connection of its own. */
  async #channel({ master }: Connection, line: string): Promise<Client> {
    const options = ['-F', 'none', '-S', master.controlPath, '-T', '-o', 'BatchMode=yes', '-o', 'ProxyCommand=false'];
    const channel = await spawnChannel('ssh', [...options, '--', 'shared', line]);
    const stderr = new PassThrough();
    let message = '';
    channel.stderr.on('data', (bytes: Buffer) => {
      if (message.length < MOST_WORDS) message += bytes.toString('utf8');
    });
    channel.stderr.on('error', () => stderr.end());
    channel.stderr.pipe(stderr);
    const heard = once(channel.stderr, 'close').then(() => message);
    const closed = channel.closed.then((end) => trueEnd(end, master));
    return { ...channel, stderr, heard, said: () => message, closed };
  }
}

/** A channel, and its complete stderr once that has ended. */
interface Client extends Channel {
  readonly heard: Promise<string>;
  /** The beginning of it so far. */
  readonly said: () => string;
}

/** ssh exits with 255 for its own failures and for a command that exited so; the master tells them apart. */
async function trueEnd(end: ChannelEnd, master: Master): Promise<ChannelEnd> {
  if (end.kind === 'signaled') return { kind: 'lost', reason: new Error(`ssh was killed by ${end.signal}`) };
  if (end.kind === 'lost' || end.code !== 255) return end;
  const alive = !master.gone && (await answers(master.controlPath));
  return alive ? end : { kind: 'lost', reason: await master.lost };
}

function answers(controlPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    execFile('ssh', ['-F', 'none', '-S', controlPath, '-O', 'check', '--', 'shared'], (error) =>
      resolve(error === null),
    );
  });
}

/** ssh's message if the server refused the session; undefined as soon as the command prints anything or ends. */
async function refusal({ stdout, heard }: Client): Promise<string | undefined> {
  await once(stdout, 'readable');
  if (stdout.readableLength > 0) return undefined;
  const message = await heard;
  return isSessionRefusal(message) ? message.trim() : undefined;
}
