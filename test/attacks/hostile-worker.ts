import { connect } from 'node:net';
import { loadPaths } from '../../src/config/paths.ts';
import { quoted } from '../../src/job/values.ts';
import { Link } from '../../src/pool/worker/link.ts';
import { machineAd } from '../../src/pool/host/machine.ts';
import { poolPlaces } from '../../src/pool/host/places.ts';
import { type IssuedToken, Tokens } from '../../src/pool/wire/tokens.ts';
import type { WireAsk, FromCentralManager, FromWorker, HeldAttempt } from '../../src/pool/wire/wire.ts';
import { type TestAgent, until } from '../agent/agent.ts';

type Start = Extract<FromCentralManager, { t: 'start' }>;

export interface HostileOptions {
  readonly token?: IssuedToken;
  readonly instance?: string;
  readonly cpus?: number;
  readonly held?: readonly HeldAttempt[];
  /** What it answers when told to start a job; default: nothing. */
  readonly onStart?: (worker: HostileWorker, start: Start) => void;
  /** Its answer to a request for results. */
  readonly onAsk?: (ask: WireAsk) => { readonly files?: unknown; readonly bytes?: Buffer };
}

/** A worker run by an attacker: it has a pilot's token, and can send anything. */
export class HostileWorker {
  readonly #link: Link;
  readonly started: Start[] = [];
  readonly downs: string[] = [];
  ups = 0;
  denied: string | undefined;

  constructor(agent: TestAgent, options: HostileOptions = {}) {
    const places = placesOf(agent);
    const { token = pilotToken(agent), instance = 'hostile', cpus = 4, held = [], onStart, onAsk } = options;
    const size = { cpus, memoryMb: 100_000, diskKb: 1e8, gpus: 0 };
    const ad = {
      ...machineAd('hostile', size, { GryphusSite: quoted('local'), FileSystemDomain: quoted('elsewhere') }),
      TimeToLive: '100000',
    };
    this.#link = new Link({
      token,
      instance,
      boot: 'b',
      size: () => size,
      longestRetryMs: 200,
      dial: () =>
        new Promise((resolve, reject) => {
          const made = connect({ path: places.workerSocket });
          made.once('connect', () => resolve(made));
          made.once('error', reject);
        }),
      ad: () => ad,
      held: () => held,
      take: (message) => {
        if (message.t === 'start') {
          this.started.push(message);
          onStart?.(this, message);
        } else if (message.t === 'ask') {
          const { files, bytes } = onAsk?.(message) ?? {};
          this.say({ t: 'answer', id: message.id, ok: true, ...(files === undefined ? {} : { files }) }, bytes);
        }
      },
      onUp: () => (this.ups += 1),
      onDown: (message) => this.downs.push(message),
      onDenied: (message) => (this.denied = message),
    });
    this.#link.open();
  }

  get up(): boolean {
    return this.#link.up;
  }

  /** What an honest worker's types do not allow it to send. */
  say(message: object, bytes?: Buffer): void {
    this.#link.say(message as FromWorker, bytes);
  }

  ask(question: Parameters<Link['asking']['ask']>[0]): Promise<Buffer> {
    return this.#link.asking.ask(question).then(({ bytes }) => bytes);
  }

  /** The end of a job; `more`: fields of the message, `ending`: of the end itself. */
  end({ key }: { readonly key: string }, more: object = {}, ending: object = {}, bytes?: Buffer): void {
    const how = { kind: 'exited', code: 0 };
    const whole = { how, startedAt: 1e9, endedAt: 1e9 + 1, stdoutBytes: 0, stderrBytes: 0, ...ending };
    this.say({ t: 'ended', key, ending: whole, inline: { stdout: 0, stderr: 0 }, ...more }, bytes);
  }

  close(): void {
    this.#link.end('over');
  }
}

export function placesOf(agent: TestAgent) {
  return poolPlaces(loadPaths({ ...agent.env }));
}

export function pilotToken(agent: TestAgent, more: { readonly cpus?: number } = {}): IssuedToken {
  return new Tokens(placesOf(agent).dir).issue({ site: 'siteA', local: false, ...more });
}

/** The only job that was given to it. */
export function given(worker: HostileWorker): Promise<Start> {
  return until('the worker to be given a job', () => worker.started.at(-1), 20_000);
}
