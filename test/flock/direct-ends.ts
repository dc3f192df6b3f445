import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DirectResults } from '../../src/flock/direct-results.ts';
import { DirectMeetings } from '../../src/flock/direct-meetings.ts';
import type { FlockAsk } from '../../src/flock/flock-wire.ts';
import type { AttemptKey } from '../../src/job/ids.ts';
import type { DirectHome } from '../../src/pool/wire/direct-wire.ts';
import { type LeftRun, WorkerDirectResults } from '../../src/pool/worker/direct-results.ts';
import { PartnerDial } from '../../src/pool/worker/partner-dial.ts';
import { openPortWay, type PortWay } from '../../src/reverse-connection/port-way.ts';
import { greetHome } from '../../src/reverse-connection/secure.ts';
import { relay } from '../../src/reverse-connection/relay.ts';
import { reach } from '../../src/reverse-connection/reach.ts';

type Question = FlockAsk extends infer A ? (A extends FlockAsk ? Omit<A, 't' | 'id'> : never) : never;

export const KEY: AttemptKey = 'ours.1.0.1';
export const OTHER: AttemptKey = 'ours.2.0.1';

/** Questions of the gateway to the worker. */
export const FILES = { what: 'files', key: KEY, outputs: 'new' } as const;
export const read = (path: string, bytes: number, offset = 0) =>
  ({ what: 'read', key: KEY, path, offset, bytes }) as const;

export const sha256 = (text: string | Buffer) => createHash('sha256').update(text).digest('hex');

/** A worker with the results of two attempts, and the gateway of the partner that they belong to, with its port. */
export class DirectEnds {
  readonly dir = mkdtempSync(join(tmpdir(), 'direct-'));
  readonly runs = new Map<AttemptKey, LeftRun>();
  readonly worker = new WorkerDirectResults((key) => this.runs.get(key), new PartnerDial());
  /** What was asked by the gateways, and what was logged. */
  readonly byGateways: string[] = [];
  readonly logged: string[] = [];
  readonly turnedAway: string[] = [];
  /** Where the worker was told to connect, latest last. */
  readonly told: DirectHome[] = [];
  /** Where the worker was told to meet the borrower. */
  readonly met: DirectHome[] = [];
  version = 3;
  /** How the worker is told; replaced by tests of what can go wrong. */
  tell: (key: AttemptKey, to: DirectHome) => Promise<void> = (key, to) => this.worker.open(key, to);
  readonly results: DirectResults;
  port!: PortWay;
  /** Whether the borrower can dial the lender's gateway, where it meets the worker. */
  mayDial = false;
  readonly meetings = new DirectMeetings();
  lendersPort!: PortWay;
  #line!: Server;
  readonly #sockets = new Set<Socket>();
  /** Bytes after which the line is cut. */
  cutAfter = Number.POSITIVE_INFINITY;

  constructor() {
    for (const key of [KEY, OTHER]) {
      const work = join(this.dir, key, 'work');
      mkdirSync(work, { recursive: true });
      writeFileSync(join(this.dir, key, 'stdout'), `output of ${key}`);
      writeFileSync(join(work, 'out'), `result of ${key}`);
      const stream = (name: string) => join(this.dir, key, name);
      this.runs.set(key, { phase: 'ended', names: [], dir: { work, uid: process.getuid?.() ?? 0, stream } });
    }
    const version = () => this.version;
    this.results = new DirectResults({
      partner: 'p',
      link: {
        up: true,
        get version() {
          return version();
        },
        ask: (question) => this.#asked(question),
      },
      mayDial: () => this.mayDial,
      dial: async (name, secret) => {
        const raw = await reach({ host: '127.0.0.1', port: this.lendersPort.port }, 5000);
        return greetHome(raw, { worker: name, key: Buffer.from(secret, 'hex'), patienceMs: 5000 });
      },
      mayConnect: () => true,
      log: (message, facts) => void this.logged.push(`${message} ${JSON.stringify(facts)}`),
    });
  }

  /** Opens the gateway's port, and before it the line by which the worker comes. */
  async open(): Promise<this> {
    this.port = await this.#portOf(this.results);
    this.lendersPort = await this.#portOf(this.meetings);
    this.#line = createServer((socket) => void this.#pass(socket));
    await new Promise<void>((resolve) => this.#line.listen(0, '127.0.0.1', resolve));
    return this;
  }

  #portOf(gateway: Pick<DirectResults, 'keyOf' | 'welcome'>): Promise<PortWay> {
    return openPortWay({
      host: '127.0.0.1',
      port: 0,
      descriptors: 1024,
      keyOf: (name) => gateway.keyOf(name),
      welcome: ({ worker, link }) => {
        if (!gateway.welcome(worker, link)) link.destroy();
      },
      onTurnedAway: (message) => void this.turnedAway.push(message),
    });
  }

  async #pass(socket: Socket): Promise<void> {
    this.#sockets.add(socket);
    const onward = await reach({ host: '127.0.0.1', port: this.port.port }, 5000);
    relay(socket, onward);
    let passed = 0;
    socket.on('data', ({ length }) => {
      passed += length;
      if (passed > this.cutAfter) socket.destroy();
    });
  }

  get linePort(): number {
    const address = this.#line.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  /** Ends the connection that is there. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  close(): void {
    this.worker.close();
    this.results.close('the test ends');
    this.port.close();
    this.lendersPort.close();
    this.#line.close();
    this.cut();
    rmSync(this.dir, { recursive: true, force: true });
  }

  async #asked(question: Question) {
    if (question.what === 'direct') {
      const { key, name, secret, dials } = question;
      if (dials) {
        const here = { host: '127.0.0.1', port: this.lendersPort.port };
        await this.meetings.open({ name, secret }, here, (home) => {
          this.met.push(home);
          return this.worker.open(key, home);
        });
        return { t: 'answer' as const, id: 1, ok: true as const, bytes: Buffer.alloc(0) };
      }
      const to = { host: '127.0.0.1', port: this.linePort, name, secret };
      this.told.push(to);
      await this.tell(key, to);
      return { t: 'answer' as const, id: 1, ok: true as const, bytes: Buffer.alloc(0) };
    }
    this.byGateways.push(question.what);
    const files = [{ name: 'by-gateways', bytes: 3, executable: false }];
    return { t: 'answer' as const, id: 1, ok: true as const, files, bytes: Buffer.from('gat') };
  }
}
