import { createHash } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { AGREEMENT_KEYS, type FlockKey } from '../../src/config/agreements.ts';
import { presets } from '../../src/config/table.ts';
import { dialPartner } from '../../src/flock/dial.ts';
import type { Of } from '../../src/flock/flock-wire.ts';
import { FlockLink, type ForGateway } from '../../src/flock/link.ts';
import { encodeFrame, FrameReader, type WireMessage } from '../../src/pool/wire/frames.ts';
import { reach } from '../../src/reverse-connection/reach.ts';
import { greetHome } from '../../src/reverse-connection/secure.ts';

type Asked = { readonly id: number; readonly what: string; readonly bytes?: number };
type Said = readonly [answer: object, bytes?: Buffer];

const SIZE = { cpus: 16, memoryMb: 32_000, diskKb: 1e7, gpus: 0 };
/** What it says that each job left. */
const ANNOUNCED = 3e6;
const sha256 = createHash('sha256').update(Buffer.alloc(ANNOUNCED, 'x')).digest('hex');

/** How it lies about the results of a job, which are asked for piece by piece. */
export const LIES: Readonly<Record<string, (asked: Asked) => Said>> = {
  more: ({ id, bytes = 0 }) => [{ t: 'answer', id, ok: true }, Buffer.alloc(bytes + 1)],
  fewer: ({ id, bytes = 0 }) => [{ t: 'answer', id, ok: true }, Buffer.alloc(Math.max(0, bytes - 1))],
  other: ({ id, bytes = 0 }) => [{ t: 'answer', id, ok: true }, Buffer.alloc(bytes, 'y')],
  nothing: ({ id }) => [{ t: 'answer', id, ok: true }],
  unasked: ({ id }) => [{ t: 'answer', id: id + 1000, ok: true }],
  endless: ({ id, bytes = 0 }) => [{ t: 'answer', id, ok: true }, Buffer.alloc(bytes, 'x')],
};

/** A partner that takes each job, never runs it, says that it has ended, and lies about its results. The lie is the job's argument. */
export class LyingPartner {
  readonly #link: FlockLink;
  readonly #port: number;
  readonly #lies = new Map<string, string>();
  readonly #streams = new Set<Duplex>();
  /** Bytes of endless answers that were taken. */
  poured = 0;

  constructor(port: number, key: FlockKey) {
    this.#port = port;
    const agreement = { ...presets(AGREEMENT_KEYS), name: 'us', keyFile: '', url: `127.0.0.1:${port}` };
    this.#link = new FlockLink({
      agent: 'liar-agent',
      name: 'liar',
      dial: () => dialPartner({ agreement, key }),
      onHello: () => undefined,
      onUp: () => {
        const version = '"$CondorVersion: 25.12.0 2026-01-01 $"';
        const kind = {
          ad: { Arch: '"X86_64"', OpSys: '"LINUX"', CondorVersion: version },
          machines: 1,
          each: SIZE,
          all: SIZE,
        };
        this.#link.send({ t: 'list', kinds: [kind] });
      },
      onDown: () => undefined,
      take: (message) => this.#take(message),
      onFault: () => undefined,
      isBusy: () => true,
      onConfirmed: () => undefined,
    });
    this.#link.open();
  }

  close(): void {
    this.#link.close('the test ends');
    for (const stream of this.#streams) stream.destroy();
  }

  #take(message: ForGateway): void {
    if (message.t === 'prepare') {
      this.#lies.set(message.key, message.spec.args[0] ?? '');
      this.#link.send({ t: 'prepared', key: message.key, round: message.round });
    } else if (message.t === 'commit') {
      const { key, round } = message;
      this.#link.send({ t: 'started', key, round, at: Date.now() / 1000 });
      this.#link.send({ t: 'ended', key, round, ending: { how: { kind: 'exited', code: 0 } } });
    } else if (message.t === 'ask' && message.what !== 'blob') void this.#answer(message);
  }

  async #answer(asked: Of<'ask'>): Promise<void> {
    if (asked.what === 'direct') {
      await this.#connect(asked);
      this.#link.send({ t: 'answer', id: asked.id, ok: true });
      return;
    }
    const lie = this.#lies.get(asked.key) ?? '';
    // By the gateways, a question that is not answered waits for two minutes.
    const [answer, bytes] = this.#lie(lie === 'unasked' ? 'endless' : lie, asked);
    this.#link.send(answer as Of<'answer'>, bytes);
  }

  /** As the worker that ran it. */
  async #connect({ key, name, secret }: Extract<Of<'ask'>, { what: 'direct' }>): Promise<void> {
    const raw = await reach({ host: '127.0.0.1', port: this.#port }, 5000);
    const stream = await greetHome(raw, { worker: name, key: Buffer.from(secret, 'hex'), patienceMs: 5000 });
    this.#streams.add(stream);
    stream.on('error', () => undefined);
    const lie = this.#lies.get(key) ?? '';
    const reader = new FrameReader((message) => {
      const asked = message as WireMessage & { readonly id: number; readonly bytes?: number };
      const [answer, bytes] = this.#lie(lie, { ...asked, what: asked.t });
      for (const part of encodeFrame(answer as WireMessage, bytes)) stream.write(part);
      if (lie === 'endless' && asked.t === 'read') this.#pour(stream, encodeFrame(answer as WireMessage, bytes));
    });
    stream.on('data', (data: Buffer) => reader.push(data));
  }

  /** The same answer again and again, as long as it is taken. */
  #pour(stream: Duplex, frame: readonly Uint8Array[]): void {
    if (stream.destroyed) return;
    for (const part of frame) {
      stream.write(part);
      this.poured += part.length;
    }
    stream.once('drain', () => this.#pour(stream, frame));
  }

  #lie(lie: string, asked: Asked): Said {
    const { id } = asked;
    if (asked.what !== 'files') return LIES[lie]?.(asked) ?? LIES['endless']?.(asked) ?? [{}];
    const file = { executable: false, bytes: ANNOUNCED, sha256 };
    const files =
      lie === 'above'
        ? ['../../../escaped', '/tmp/escaped', 'out.txt'].map((name) => ({ ...file, name }))
        : [{ ...file, name: 'out.txt' }];
    return [{ t: 'answer', id, ok: true, files }];
  }
}
