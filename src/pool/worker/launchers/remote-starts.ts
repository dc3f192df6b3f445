import { randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import * as z from 'zod';
import { parseAttemptKey } from '../../../job/ids.ts';
import { digestOf, LoopbackPort } from '../../../io-proxy/loopback-port.ts';
import type { Run } from '../run.ts';
import type { FromWorker, ForShells } from '../../wire/wire.ts';
import { type LauncherScripts, placeLaunchers } from './launchers.ts';

/** What a shell's start and input mean to whoever runs it. */
export type ShellOrder = Extract<ForShells, { t: 'shell' | 'shell-in' | 'shell-size' | 'shell-close' }>;
export type ShellNews = Extract<FromWorker, { t: 'shell-out' | 'shell-over' }>;

export interface RemoteStartsOptions {
  readonly scripts: LauncherScripts;
  readonly runs: () => Iterable<Run>;
  /** Handles an order for a shell at this worker; its news come back by `say`. */
  readonly here: (order: ShellOrder, bytes: Buffer, say: (news: ShellNews, bytes?: Uint8Array) => void) => void;
  /** Sends a message to the central manager, which passes it on to the worker of the other node. */
  readonly away: (message: FromWorker, bytes?: Uint8Array) => void;
}

const ASK = z.strictObject({ cookie: z.string(), host: z.string(), command: z.string() });
const HOST = /^node(\d{1,7})$/;
const MOST_LINE = 1 << 20;
const FAILED = 255;

/** Commands that a node of a parallel job starts at the others (`gryphus-rsh`). */
export class RemoteStarts {
  readonly #options: RemoteStartsOptions;
  readonly #jobs = new Map<string, Run>();
  readonly #open = new Map<string, (news: ShellNews, bytes?: Uint8Array) => void>();
  readonly #port = new LoopbackPort((socket, known) => this.#greet(socket, known));

  constructor(options: RemoteStartsOptions) {
    this.#options = options;
  }

  /** Must have resolved before a node is opened. */
  listen(): Promise<void> {
    return this.#port.listen();
  }

  /** From now on the node's processes can start commands at the others. Returns its variables for that. */
  open(run: Run): Readonly<Record<string, string>> {
    for (const [token, one] of this.#jobs) if (one.phase === 'ended') this.#jobs.delete(token);
    const cookie = randomBytes(24).toString('base64url');
    this.#jobs.set(digestOf(cookie), run);
    const { spec, user } = run.record;
    const cwd = spec.shared?.cwd ?? spec.cwd ?? run.dir.work;
    return {
      _CONDOR_JOB_IWD: cwd,
      ...placeLaunchers(run.dir.work, this.#options.scripts, { port: this.#port.number, cookie, user }),
    };
  }

  /** What a command at another worker says. */
  hear(news: ShellNews, bytes: Buffer): void {
    this.#open.get(news.shell)?.(news, bytes);
  }

  close(): void {
    this.#port.close();
  }

  /** The first line says who asks, and for what. */
  #greet(socket: Socket, known: () => void): void {
    let head: Buffer = Buffer.alloc(0);
    const read = (bytes: Buffer) => {
      head = Buffer.concat([head, bytes]);
      const end = head.indexOf(10);
      if (end < 0) {
        if (head.length > MOST_LINE) socket.destroy();
        return;
      }
      socket.off('data', read);
      known();
      socket.pause();
      this.#start(socket, head.subarray(0, end).toString(), head.subarray(end + 1));
    };
    socket.on('data', read);
  }

  #start(socket: Socket, line: string, first: Buffer): void {
    const asked = readAsk(line);
    const run = asked && this.#jobs.get(digestOf(asked.cookie));
    const number = HOST.exec(asked?.host ?? '')?.[1];
    const shell = `n${randomBytes(12).toString('base64url')}`;
    const say = (news: ShellNews, bytes: Uint8Array = new Uint8Array()) => {
      if (news.t === 'shell-out') return void socket.write(frame(news.stream === 'stdout' ? 1 : 2, bytes));
      this.#open.delete(shell);
      if (news.message !== undefined) socket.write(frame(2, Buffer.from(`gryphus-rsh: ${news.message}\n`)));
      const status = Buffer.alloc(4);
      status.writeInt32BE(news.status);
      socket.end(frame(3, status));
    };
    const refuse = (message: string) => say({ t: 'shell-over', shell, status: FAILED, message });
    if (!asked || run?.phase !== 'running') return refuse('this is not a running node of a parallel job');
    if (number === undefined)
      return refuse(`${JSON.stringify(asked.host)} is not a node of this job: its nodes are node0, node1, …`);
    this.#open.set(shell, say);
    const there = this.#atThisWorker(run, Number(number));
    const order = (message: ShellOrder, bytes: Buffer = Buffer.alloc(0)) => this.#options.here(message, bytes, say);
    const away = (message: FromWorker, bytes?: Uint8Array) => this.#options.away(message, bytes);
    const { command } = asked;
    if (there) order({ t: 'shell', shell, key: there.key, command, stays: true });
    else away({ t: 'node-start', shell, key: run.key, node: Number(number), command });
    const pass = (bytes: Buffer, end: boolean) => {
      const message = { t: 'shell-in', shell, end } as const;
      if (there) order(message, bytes);
      else away(message, bytes);
    };
    if (first.length > 0) pass(first, false);
    socket.on('data', (bytes: Buffer) => pass(bytes, false));
    socket.on('end', () => pass(Buffer.alloc(0), true));
    socket.once('close', () => {
      if (!this.#open.delete(shell)) return;
      if (there) order({ t: 'shell-close', shell });
      else away({ t: 'shell-close', shell });
    });
    socket.resume();
  }

  /** The node of the same job with this number, if it runs here too. */
  #atThisWorker({ key }: Run, number: number): Run | undefined {
    const mine = parseAttemptKey(key);
    for (const run of this.#options.runs()) {
      const one = parseAttemptKey(run.key);
      const same = one?.agent === mine?.agent && one?.cluster === mine?.cluster;
      if (same && one?.node === number && run.phase === 'running') return run;
    }
    return undefined;
  }
}

function readAsk(line: string): z.infer<typeof ASK> | undefined {
  try {
    return ASK.safeParse(JSON.parse(line)).data;
  } catch {
    return undefined;
  }
}

function frame(kind: number, body: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(kind, 0);
  head.writeUInt32BE(body.length, 1);
  return Buffer.concat([head, body]);
}
