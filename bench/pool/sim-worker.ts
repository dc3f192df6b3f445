import { randomBytes } from 'node:crypto';
import { quoted } from '../../src/job/values.ts';
import type { AttemptKey } from '../../src/job/ids.ts';
import { Link } from '../../src/pool/worker/link.ts';
import { changingAd, machineAd } from '../../src/pool/host/machine.ts';
import type { IssuedToken } from '../../src/pool/wire/tokens.ts';
import type { FromCentralManager, FromWorker, HeldAttempt } from '../../src/pool/wire/wire.ts';
import { dialHome } from '../../src/reverse-connection/dial.ts';

/** What all simulated workers together saw: how often each attempt was started, and how often each job ran to its end. */
export interface Ledger {
  readonly starts: Map<string, number>;
  readonly ends: Map<string, number>;
}

interface Held {
  is: 'running' | 'ended';
  readonly startedAt: number;
  message: FromWorker | undefined;
  timer: ReturnType<typeof setTimeout> | undefined;
}

/**
 * One worker with one core, whose jobs only wait. All of its messages go over the real link, in TLS, to the real
 * central manager.
 */
export class SimWorker {
  readonly token: IssuedToken;
  readonly #link: Link;
  readonly #held = new Map<AttemptKey, Held>();
  readonly #ledger: Ledger;
  readonly #seconds: () => number;
  #dead = false;

  constructor(token: IssuedToken, name: string, homeSocket: string, ledger: Ledger, seconds: () => number) {
    this.token = token;
    this.#ledger = ledger;
    this.#seconds = seconds;
    const size = { cpus: 1, memoryMb: 1024, diskKb: 100_000_000, gpus: 0 };
    const instance = randomBytes(9).toString('base64url');
    const ad = machineAd(name, size, {
      GryphusSite: quoted(token.site),
      GryphusWorker: quoted(instance),
      FileSystemDomain: quoted(instance),
      UidDomain: quoted(instance),
    });
    this.#link = new Link({
      token,
      instance,
      boot: instance,
      size: () => size,
      longestRest: Number.POSITIVE_INFINITY,
      dial: () => dialHome({ worker: token.id, key: token.secret, ways: [{ kind: 'socket', path: homeSocket }] }),
      ad: () => ({ ...ad, ...changingAd(Date.now() / 1000, undefined) }),
      held: () => [...this.#held].map(([key, held]) => heldAttempt(key, held)),
      take: (message) => this.#take(message),
      onUp: () => undefined,
      onDown: () => undefined,
      onDenied: () => this.die(),
    });
    this.#link.open();
  }

  get up(): boolean {
    return this.#link.up;
  }

  /** Like a power failure of its node: nothing is sent. */
  die(): void {
    this.#dead = true;
    for (const { timer } of this.#held.values()) clearTimeout(timer);
    this.#held.clear();
    this.#link.end('');
  }

  #take(message: FromCentralManager): void {
    if (this.#dead) return;
    if (message.t === 'start') return this.#start(message.key);
    if (message.t === 'forget') {
      for (const key of message.keys) {
        clearTimeout(this.#held.get(key)?.timer);
        this.#held.delete(key);
      }
    }
    if (message.t === 'ask') {
      this.#link.say({ t: 'answer', id: message.id, ok: true, files: [], missing: [] });
    }
  }

  #start(key: AttemptKey): void {
    const known = this.#held.get(key);
    if (known) {
      if (known.message) this.#link.say(known.message, Buffer.alloc(0));
      return;
    }
    this.#ledger.starts.set(key, (this.#ledger.starts.get(key) ?? 0) + 1);
    const startedAt = Date.now() / 1000;
    const held: Held = { is: 'running', startedAt, message: undefined, timer: undefined };
    this.#held.set(key, held);
    this.#link.say({ t: 'started', key, at: startedAt });
    held.timer = setTimeout(() => {
      const job = key.split('.').slice(1, 3).join('.');
      this.#ledger.ends.set(job, (this.#ledger.ends.get(job) ?? 0) + 1);
      held.is = 'ended';
      held.message = {
        t: 'ended',
        key,
        ending: { how: { kind: 'exited', code: 0 }, startedAt, endedAt: Date.now() / 1000 },
        inline: { stdout: 0, stderr: 0 },
        files: [],
      };
      this.#link.say(held.message, Buffer.alloc(0));
    }, this.#seconds() * 1000);
  }
}

function heldAttempt(key: AttemptKey, { is, startedAt, message }: Held): HeldAttempt {
  return { key, is, startedAt, ...(message?.t === 'ended' ? { ending: message.ending } : {}) };
}
