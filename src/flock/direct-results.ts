import { randomBytes } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { asError } from '../errors.ts';
import type { AttemptKey } from '../job/ids.ts';
import { crashPoint } from '../util/crash-point.ts';
import { type Deferred, deferred } from '../util/deferred.ts';
import { type Answered, DirectLink } from '../pool/wire/direct-link.ts';
import { DirectRest } from './direct-rest.ts';
import type { FlockAsk } from './flock-wire.ts';
import type { FlockLink } from './link.ts';

type Asked = Extract<FlockAsk, { what: 'files' | 'read' }>;
type Question = Asked extends infer A ? (A extends Asked ? Omit<A, 't' | 'id'> : never) : never;

/** Who can say what an ended attempt left. */
export interface ResultsSource {
  ask(question: Question, isNear?: boolean): Promise<Answered>;
}

export interface DirectResultsOptions {
  readonly partner: string;
  /** By the gateways. */
  readonly link: Pick<FlockLink, 'ask' | 'up' | 'version'>;
  /** Whether the agreement has an address of the partner's gateway that we can dial, */
  readonly mayDial: () => boolean;
  /** and dials it by a name and a secret. */
  readonly dial: (name: string, secret: string) => Promise<Duplex>;
  /** Whether this process may have one more connection. */
  readonly mayConnect: () => boolean;
  readonly log: (message: string, facts?: object) => void;
}

/** A partner of this version lets its workers dial. */
const VERSION = 2;
/** One of this version lets us meet them at its gateway. */
const MEETS = 3;
/** How long a worker has to connect, in milliseconds. */
const COME_MS = 15_000;
/** Connections from workers of one partner at once. */
const MOST_LINKS = 32;
/** How often the worker of one attempt connects. */
const MOST_DIALS = 3;

/** How the results of one attempt come. */
interface Way {
  /** How often its worker was asked to connect. */
  dials: number;
  link: Promise<DirectLink | undefined>;
  /** The latest list that was wanted: before a piece comes by the gateways, the same is listed there. */
  outputs?: Extract<Question, { what: 'files' }>['outputs'];
  listed?: Promise<unknown>;
  /** What a worker that connects has to show, once. */
  awaited?: { readonly name: string; readonly secret: Buffer; readonly come: Deferred<DirectLink> };
  open?: DirectLink;
}

/**
 * The results of our jobs at a partner: from the worker itself, if it can connect to us, and otherwise, or when that
 * fails, by the gateways.
 */
export class DirectResults implements ResultsSource {
  readonly #options: DirectResultsOptions;
  readonly #ways = new Map<AttemptKey, Way>();
  readonly rest = new DirectRest();
  /** The latest connection was one that we dialled. */
  #dialled = false;

  constructor(options: DirectResultsOptions) {
    this.#options = options;
  }

  /** Connections that are open, or awaited. */
  get links(): number {
    return [...this.#ways.values()].filter(({ open, awaited }) => awaited || open?.isOver === false).length;
  }

  /** Rejects as FlockLink.ask does. `isNear`: the job ran in the partner's own pool, and not in one beyond it. */
  async ask(question: Question, isNear = true): Promise<Answered> {
    const way = this.#way(question.key, isNear);
    if (question.what === 'files') way.outputs = question.outputs;
    const link = await way.link;
    if (!link) return this.#byGateways(way, question);
    try {
      const { key: _key, what, ...asked } = question;
      // A cast because TypeScript does not pair the rest with its word.
      return await link.ask({ t: what, ...asked } as Parameters<DirectLink['ask']>[0]);
    } catch (thrown) {
      this.#failed(question.key, way, asError(thrown).message);
      return this.#byGateways(way, question);
    }
  }

  /** The secret of a worker that connects by this name. */
  keyOf(name: string): Buffer | undefined {
    return this.#awaited(name)?.awaited?.secret;
  }

  /** A worker has connected. False if it was not awaited by this name. */
  welcome(name: string, stream: Duplex): boolean {
    const way = this.#awaited(name);
    if (!way?.awaited) return false;
    const { come } = way.awaited;
    // Whoever learns the secret from now on gains nothing by it.
    delete way.awaited;
    way.open = new DirectLink(stream);
    come.resolve(way.open);
    crashPoint('direct.up');
    return true;
  }

  /** Called about once a second. `isWanted`: whether we still want an attempt's results. */
  tick(isWanted: (key: AttemptKey) => boolean): void {
    for (const [key, { open }] of this.#ways) {
      if (isWanted(key)) open?.tick();
      else this.#end(key, 'its results are not wanted any more');
    }
  }

  close(message: string): void {
    for (const key of this.#ways.keys()) this.#end(key, message);
  }

  #end(key: AttemptKey, message: string): void {
    const way = this.#ways.get(key);
    this.#ways.delete(key);
    way?.awaited?.come.reject(new Error(message));
    way?.open?.close(message);
  }

  #awaited(name: string): Way | undefined {
    return [...this.#ways.values()].find(({ awaited }) => awaited?.name === name);
  }

  #way(key: AttemptKey, isNear: boolean): Way {
    const way = this.#ways.get(key) ?? { link: Promise.resolve(undefined), dials: 0 };
    this.#ways.set(key, way);
    const { link, mayConnect } = this.#options;
    // A link that ended because nothing was asked is made again.
    const isMissing = way.dials === 0 || way.open?.isOver === true;
    if (!isNear || !isMissing || !link.up || link.version < VERSION) return way;
    delete way.open;
    way.dials += 1;
    const may = way.dials <= MOST_DIALS && this.links < MOST_LINKS && this.rest.mayTry && mayConnect();
    way.link = may ? this.#come(key, way) : Promise.resolve(undefined);
    return way;
  }

  /** Has the worker connect; `undefined` if it cannot. */
  async #come(key: AttemptKey, way: Way): Promise<DirectLink | undefined> {
    const { log, partner } = this.#options;
    try {
      const open = await this.rest.watch(this.#connect(key, way));
      log('results of a job come from the worker itself', { partner, key, ...(this.#dialled && { dialled: true }) });
      return open;
    } catch (thrown) {
      log('results of a job come by the gateways', { partner, key, message: asError(thrown).message });
      return undefined;
    }
  }

  /** By the way that worked the last time, and then by the other. */
  async #connect(key: AttemptKey, way: Way): Promise<DirectLink> {
    const first = this.#dialled;
    let failure: unknown;
    for (const dials of [first, !first]) {
      try {
        const open = await (dials ? this.#dial(key, way) : this.#await(key, way));
        this.#dialled = dials;
        return open;
      } catch (thrown) {
        // The first way is the one that was meant to work.
        failure ??= thrown;
      }
    }
    throw failure;
  }

  /** We dial the partner's gateway, where its worker waits for us. */
  async #dial(key: AttemptKey, way: Way): Promise<DirectLink> {
    const { link, dial, mayDial } = this.#options;
    const { name, secret } = credentials();
    if (link.version < MEETS) throw new Error('the partner is of an earlier version');
    if (!mayDial()) throw new Error('the agreement has no address that we could dial');
    crashPoint('direct.asked');
    await link.ask({ what: 'direct', key, name, secret: secret.toString('hex'), dials: true });
    const open = new DirectLink(await dial(name, secret.toString('hex')));
    if (this.#ways.get(key) !== way) {
      open.close('its results are not wanted any more');
      throw new Error('its results are not wanted any more');
    }
    way.open = open;
    crashPoint('direct.up');
    return open;
  }

  /** The worker dials us. */
  async #await(key: AttemptKey, way: Way): Promise<DirectLink> {
    const { link } = this.#options;
    const { name, secret } = credentials();
    const come = deferred<DirectLink>();
    way.awaited = { name, secret, come };
    crashPoint('direct.asked');
    const late = setTimeout(() => come.reject(new Error('it did not come')), COME_MS);
    link
      .ask({ what: 'direct', key, name, secret: secret.toString('hex') })
      .catch((thrown: unknown) => come.reject(asError(thrown)));
    try {
      return await come.promise;
    } finally {
      delete way.awaited;
      clearTimeout(late);
    }
  }

  #failed(key: AttemptKey, way: Way, message: string): void {
    if (!way.open) return;
    this.#options.log('the results of a job go on by the gateways', { partner: this.#options.partner, key, message });
    way.open.close(message);
    delete way.open;
    way.link = Promise.resolve(undefined);
  }

  async #byGateways(way: Way, question: Question): Promise<Answered> {
    const { link } = this.#options;
    const { outputs } = way;
    if (question.what === 'files') {
      const listing = link.ask(question);
      way.listed = listing;
      return listing;
    }
    if (outputs !== undefined) {
      way.listed ??= link.ask({ what: 'files', key: question.key, outputs });
      try {
        await way.listed;
      } catch (thrown) {
        delete way.listed;
        throw thrown;
      }
    }
    return link.ask(question);
  }
}

/** By which a connection is known, once. */
function credentials(): { readonly name: string; readonly secret: Buffer } {
  return { name: `direct.${randomBytes(12).toString('base64url')}`, secret: randomBytes(32) };
}
