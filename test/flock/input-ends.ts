import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AGREEMENT_KEYS, type Agreement } from '../../src/config/agreements.ts';
import { presets } from '../../src/config/table.ts';
import { Borrower } from '../../src/flock/borrower.ts';
import { recoverBorrowed } from '../../src/flock/borrowed-journal.ts';
import { DirectInputs } from '../../src/flock/direct-inputs.ts';
import type { FlockAsk, Of } from '../../src/flock/flock-wire.ts';
import { LendingInputs } from '../../src/flock/lending-inputs.ts';
import type { Lent } from '../../src/flock/lent-journal.ts';
import { LentFiles } from '../../src/flock/lent-files.ts';
import { outgoingSpec, SERVES_INPUTS } from '../../src/flock/outgoing.ts';
import { GryphusError } from '../../src/errors.ts';
import type { AttrTexts } from '../../src/job/attrs.ts';
import type { AttemptKey } from '../../src/job/ids.ts';
import type { DirectHome } from '../../src/pool/wire/direct-wire.ts';
import { blobsOf } from '../../src/pool/wire/run-blobs.ts';
import type { RunSpec } from '../../src/pool/wire/wire.ts';
import { JobAdText } from '../../src/pool/worker/ad-files.ts';
import { PartnerDial } from '../../src/pool/worker/partner-dial.ts';
import { PartnerInputs } from '../../src/pool/worker/partner-inputs.ts';
import type { Run } from '../../src/pool/worker/run.ts';
import { BlobCache } from '../../src/pool/worker/sandbox.ts';
import { stage } from '../../src/pool/worker/stage.ts';
import { openPortWay, type PortWay } from '../../src/reverse-connection/port-way.ts';
import { reach } from '../../src/reverse-connection/reach.ts';
import { relay } from '../../src/reverse-connection/relay.ts';
import type { HomeAnswer } from '../../src/site/chirp.ts';
import { JUST_TRUE } from '../pool/just-true.ts';

type Question = FlockAsk extends infer A ? (A extends FlockAsk ? Omit<A, 't' | 'id'> : never) : never;

export const KEY: AttemptKey = 'ours.1.0.1';
export const OTHER: AttemptKey = 'ours.2.0.1';
const SIZE = { cpus: 1, memoryMb: 1, diskKb: 1, gpus: 0 };
/** What a machine of this build shows, beside a central manager of this build. */
export const KNOWS: AttrTexts = { HasDirectInputs: 'true', GryphusAsksGateway: 'true' };

export const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

/** The gateway of a pool that has lent jobs of ours to a partner, the partner's gateway, and a worker of the partner. */
export class InputEnds {
  readonly dir = mkdtempSync(join(tmpdir(), 'inputs-'));
  /** What was asked of the borrower's gateway over the link, and what was logged. */
  readonly asked: Question['what'][] = [];
  readonly logged: string[] = [];
  /** Where the worker was told to connect. */
  readonly told: DirectHome[] = [];
  readonly inputs: DirectInputs;
  readonly borrower: Borrower;
  readonly files: LentFiles;
  readonly lending: LendingInputs;
  readonly lent = new Map<AttemptKey, Lent>();
  readonly worker: PartnerInputs;
  readonly cache: BlobCache;
  machines: readonly AttrTexts[] = [KNOWS];
  terms: Partial<Agreement> = {};
  isUp = true;
  clock = 0;
  port!: PortWay;
  #line!: Server;
  readonly #sockets = new Set<Socket>();
  /** Bytes after which something happens, once, before more come. */
  #at = Number.POSITIVE_INFINITY;
  #happens: () => void = () => undefined;
  passed = 0;

  constructor(contents: Readonly<Record<string, readonly Buffer[]>>) {
    const jobs = Object.entries(contents).map(([key, all]) => [key as AttemptKey, this.#spec(key, all)] as const);
    this.borrower = new Borrower(
      {
        journal: { add: () => undefined, whenSaved: (call) => call() },
        say: () => undefined,
        tell: () => true,
        changed: () => undefined,
        mostResult: () => 1e9,
        fault: () => undefined,
        refused: () => undefined,
        clock: () => this.clock,
        log: () => undefined,
      },
      recoverBorrowed(
        jobs.flatMap(([key, spec]) => [
          {
            r: 's',
            job: { key, partner: 'lender', worker: 'w', round: 1, user: 'u', ad: {}, size: SIZE, lease: 600, spec },
          },
          { r: 'c', key },
        ]),
      ),
    );
    this.inputs = new DirectInputs({
      borrower: this.borrower,
      isHeard: () => this.isUp,
      mayConnect: () => true,
      log: (message, facts) => void this.logged.push(`${message} ${JSON.stringify(facts)}`),
    });
    this.files = new LentFiles(join(this.dir, 'lent'), () => Promise.reject(new Error('nothing is fetched')));
    this.lending = new LendingInputs({
      lender: () => ({ get: (key) => this.lent.get(key) }),
      files: this.files,
      partner: () => this.#partner,
      machines: () => this.machines,
      log: (message, facts) => void this.logged.push(`${message} ${JSON.stringify(facts)}`),
    });
    const ask = async (key: AttemptKey, request: Parameters<LendingInputs['answer']>[1]): Promise<HomeAnswer> => {
      const answer = await this.lending.answer(key, request);
      const { to } = JSON.parse(Buffer.from(answer.bytes ?? '{}').toString()) as { to?: DirectHome };
      if (to) this.told.push(to);
      return answer;
    };
    this.cache = new BlobCache(join(this.dir, 'cache'));
    this.worker = new PartnerInputs({
      ask,
      dial: new PartnerDial(),
      pull: () => async (blob, offset, bytes) => readFileSync(blob.path).subarray(offset, offset + bytes),
    });
  }

  get #partner() {
    const agreement: Agreement = {
      ...presets(AGREEMENT_KEYS),
      name: 'borrower',
      keyFile: '',
      url: `127.0.0.1:${this.linePort}`,
      ...this.terms,
    };
    const link = { up: this.isUp, ask: (question: Question) => this.#askBorrower(question) };
    return { name: 'borrower', partner: { agreement, key: { id: 'k', key: '00' } }, leavingUntil: undefined, link };
  }

  /** How the borrower's gateway answers; replaced by tests of what can go wrong. */
  answer = async (question: Question): Promise<Buffer> => {
    if (question.what === 'inputs') this.inputs.open('lender', { t: 'ask', id: 1, ...question });
    else if (question.what === 'blob') return this.borrower.piece('lender', question);
    return Buffer.alloc(0);
  };

  async #askBorrower(question: Question) {
    this.asked.push(question.what);
    if (!this.isUp) throw new GryphusError('site-unreachable', 'the partner is not connected');
    const bytes = await this.answer(question);
    return { t: 'answer' as const, id: 1, ok: true as const, bytes };
  }

  #spec(key: string, contents: readonly Buffer[]): RunSpec {
    const home = join(this.dir, 'home', key);
    mkdirSync(home, { recursive: true });
    const inputs = contents.map((bytes, i) => {
      const path = join(home, `in.${i}`);
      writeFileSync(path, bytes);
      const blob = { sha256: digest(bytes), bytes: bytes.length, path };
      return { kind: 'file' as const, name: `in.${i}`, file: { kind: 'blob' as const, blob }, executable: false };
    });
    return { ...JUST_TRUE, inputs };
  }

  async open(): Promise<this> {
    this.port = await openPortWay({
      host: '127.0.0.1',
      port: 0,
      descriptors: 1024,
      keyOf: (name) => this.inputs.keyOf(name),
      welcome: ({ worker, link }) => {
        if (!this.inputs.welcome(worker, link)) link.destroy();
      },
      onTurnedAway: (message) => void this.logged.push(message),
    });
    this.#line = createServer((socket) => void this.#pass(socket));
    await new Promise<void>((resolve) => this.#line.listen(0, '127.0.0.1', resolve));
    return this;
  }

  async #pass(socket: Socket): Promise<void> {
    this.#sockets.add(socket);
    const onward = await reach({ host: '127.0.0.1', port: this.port.port }, 5000).catch(() => undefined);
    if (!onward) return void socket.destroy();
    relay(socket, onward);
    onward.on('data', ({ length }: Buffer) => {
      this.passed += length;
      if (this.passed < this.#at) return;
      this.#at = Number.POSITIVE_INFINITY;
      this.#happens();
    });
  }

  /** After so many bytes from the gateway. */
  after(bytes: number, happens: () => void): void {
    this.#at = bytes;
    this.#happens = happens;
  }

  get linePort(): number {
    const address = this.#line.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  /** The lender's gateway takes the job, and brings what comes to it. Returns what its central manager gets. */
  async take(key: AttemptKey, ad: AttrTexts = { [SERVES_INPUTS]: 'true' }) {
    const one = this.borrower.get(key);
    if (!one) throw new Error('no such job');
    const request = { key, owner: 'u@borrower', ad: { FlockFrom: '"borrower"' }, size: SIZE, lease: 600, prio: 0 };
    const placed = this.files.placed('borrower', { ...request, spec: outgoingSpec(one.job.spec) });
    const marked = this.lending.marked(this.#partner, ad, placed);
    await this.lending.bring('borrower', marked);
    this.lent.set(key, { partner: 'borrower', round: 1, request: marked, phase: 'committed', at: 0 });
    return marked;
  }

  /** The worker that was granted the job stages it. */
  run(key: AttemptKey, isLocal = true): { readonly run: Run; readonly staged: Promise<unknown> } {
    const request = this.lent.get(key)?.request;
    if (!request) throw new Error('no such job');
    const work = join(this.dir, 'work', key);
    mkdirSync(work, { recursive: true });
    const received = { start: { ad: request.ad }, kind: new JobAdText({}) };
    const run = { key, aborted: false, dir: { work }, record: { spec: request.spec }, received } as unknown as Run;
    const pull = () => async (blob: { path: string }, offset: number, bytes: number) =>
      readFileSync(blob.path).subarray(offset, offset + bytes);
    const means = { sharesHome: isLocal, pull, proxyOf: () => '', partnerInputs: this.worker };
    return { run, staged: Promise.resolve(stage(run, this.cache, means)) };
  }

  /** Whether all inputs of the job are at the worker, as they are at home. */
  isWhole(key: AttemptKey): boolean {
    const blobs = blobsOf(this.borrower.get(key)?.job.spec ?? JUST_TRUE);
    return blobs.every((blob) => {
      const path = this.cache.here(blob);
      return path !== undefined && digest(readFileSync(path)) === blob.sha256;
    });
  }

  /** The question by which a lender asks for a connection. */
  question(key: AttemptKey, name: string, secret = 'ab'.repeat(32)): Extract<Of<'ask'>, { what: 'inputs' }> {
    return { t: 'ask', what: 'inputs', id: 1, key, name, secret };
  }

  readonly cut = (): void => {
    for (const socket of this.#sockets) socket.destroy();
  };

  close(): void {
    this.inputs.end();
    this.port.close();
    this.#line.close();
    this.cut();
    rmSync(this.dir, { recursive: true, force: true });
  }
}

export const large = (megabytes = 3) => randomBytes(megabytes << 20);
