import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Secrets } from '../../src/gridmanager/chirp/secrets.ts';
import { answerRemote } from '../../src/gridmanager/remote-io/answer-remote.ts';
import { RequestJournal } from '../../src/gridmanager/chirp/journal.ts';
import { Incoming } from '../../src/io-proxy/incoming.ts';
import type { RemoteRequest } from '../../src/io-proxy/remote-frames.ts';
import { runRemoteSession } from '../../src/io-proxy/remote-session.ts';
import type { HomeAnswer } from '../../src/site/chirp.ts';

export const REMOTE_IO = join(
  import.meta.dirname,
  '../..',
  process.env['GRYPHUS_DIST'] ?? 'dist',
  `native/${process.arch}/gryphus-remote-io`,
);

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly out: string;
  readonly err: string;
}

/** A home without an agent: a worker's port for gryphus-remote-io, and the GridManager's answers behind it. */
export class RemoteHome {
  readonly dir = mkdtempSync(join(tmpdir(), 'remote-io-'));
  readonly home: string;
  readonly work: string;
  readonly calls: string[] = [];
  others: string[] = [];
  /** Called for each request before it is answered. */
  before: (request: RemoteRequest) => Promise<void> | void = () => undefined;
  /** Called with each answer before it is sent. */
  after: (request: RemoteRequest, answer: HomeAnswer) => HomeAnswer | Promise<HomeAnswer> = (_, answer) => answer;
  program = REMOTE_IO;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #running = new Set<ChildProcess>();

  constructor() {
    this.home = join(this.dir, 'home');
    this.work = join(this.dir, 'work');
    for (const one of [this.dir, this.home, this.work]) mkdirSync(one, { recursive: true });
    this.#server = createServer((socket) => void this.#serve(socket));
  }

  async open(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    const { port } = this.#server.address() as AddressInfo;
    writeFileSync(join(this.work, '.config'), `127.0.0.1 ${port} secret\n`);
    return this;
  }

  /** Cuts all connections, as when the worker ends. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** `room`: how many megabytes of large files are kept. */
  start(
    command: readonly string[],
    more: { readonly env?: NodeJS.ProcessEnv; readonly uid?: number; readonly room?: number } = {},
  ) {
    const cache = join(this.work, `cache${Math.random()}`);
    const room = more.room === undefined ? [] : ['--room', String(more.room)];
    const words = ['run', '--config', join(this.work, '.config'), '--cache', cache, ...room, '--', ...command];
    const child = spawn(this.program, words, {
      cwd: this.work,
      // With a socket as standard input, bash would read the user's .bashrc.
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, D: this.home, ...more.env },
      ...(more.uid === undefined ? {} : { uid: more.uid, gid: more.uid }),
    });
    this.#running.add(child);
    let out = '';
    let err = '';
    child.stdout.on('data', (text: Buffer) => (out += text.toString()));
    child.stderr.on('data', (text: Buffer) => (err += text.toString()));
    const ended = new Promise<Ended>((resolve) =>
      child.once('close', (code, signal) => {
        this.#running.delete(child);
        resolve({ code, signal, out, err });
      }),
    );
    return { child, ended, cache, out: () => out };
  }

  run(command: readonly string[], more: Parameters<RemoteHome['start']>[1] = {}): Promise<Ended> {
    return this.start(command, more).ended;
  }

  bash(text: string): Promise<Ended> {
    return this.run(['bash', '-c', text]);
  }

  async close(): Promise<void> {
    for (const child of this.#running) child.kill('SIGKILL');
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
    rmSync(this.dir, { recursive: true, force: true });
  }

  async #serve(socket: Socket): Promise<void> {
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => this.#sockets.delete(socket));
    const incoming = new Incoming(socket);
    const cookie = await incoming.line();
    socket.write(cookie?.toString() === 'cookie secret' ? '0\n' : '-1\n');
    const name = (await incoming.line())?.toString().replace('remote_io ', '') ?? '';
    socket.write('0\n');
    const secrets = new Secrets([join(this.home, 'state')], join(this.dir, 'nobody'));
    const journal = new RequestJournal(join(this.dir, 'journal'));
    const said = (pieces: readonly Uint8Array[]) =>
      new Promise<void>((resolve) => void socket.write(Buffer.concat(pieces), () => resolve()));
    await runRemoteSession({
      incoming,
      write: said,
      ask: async (request) => {
        const { call, words, numbers, n, again, bytes } = request;
        this.calls.push(`${call} ${words[0]?.replace(this.home, '')}`);
        await this.before(request);
        const answer = await answerRemote(
          { op: 'remote_io', words: [call, ...words], numbers: [...numbers], session: name, n, again },
          bytes,
          { iwd: this.home, others: this.others, secrets, journal },
        );
        return this.after(request, answer);
      },
    });
    socket.destroy();
  }
}
