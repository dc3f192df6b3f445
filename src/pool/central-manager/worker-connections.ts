import type { Duplex } from 'node:stream';
import { asError } from '../../errors.ts';
import type { AttrTexts } from '../../job/attrs.ts';
import { type HomeAnswer, type HomeRequest, WORKERS_OWN } from '../../site/chirp.ts';
import type { AttemptKey } from '../../job/ids.ts';
import { inAd, quoted, readString } from '../../job/values.ts';
import { oneLine } from '../../util/plain-text.ts';
import { Asking } from '../wire/asking.ts';
import { isProof, nonce, proof } from '../wire/auth.ts';
import type { Attempt } from './attempts.ts';
import type { Worker } from './collector.ts';
import type { CentralManager } from './central-manager.ts';
import type { CentralManagerShells } from './central-manager-shells.ts';
import { Channel } from '../wire/frames.ts';
import type { Proxies } from '../host/proxies.ts';
import { inputPiece } from './shadow.ts';
import type { StagingLinks } from './staging-links.ts';
import { blobOf } from '../wire/run-blobs.ts';
import { HAS_STAGING_LINKS, type StagingLink, WORTH_A_LINK } from '../wire/staging-link.ts';
import type { IssuedToken } from '../wire/tokens.ts';
import { Checks, pingOf, restOf, WorkerSilence } from './worker-silence.ts';
import {
  type FromCentralManager,
  type FromWorker,
  readFromWorker,
  type RunSpec,
  type Size,
  wireRefusal,
} from '../wire/wire.ts';

const HANDSHAKE_MS = 30_000;
/** The maximum length of a worker's name, in characters. */
const MOST_NAME = 255;
const ANOTHER = 'it reconnected by another connection';

export interface CentralManagerWorkersOptions {
  readonly agent: string;
  readonly centralManager: CentralManager;
  readonly tokens: { find(id: string): IssuedToken | undefined; bind(token: IssuedToken, instance: string): boolean };
  /** The complete spec of an attempt. */
  readonly specOf: (key: string) => RunSpec | undefined;
  readonly proxies: Pick<Proxies, 'sign'>;
  readonly staging: Pick<StagingLinks, 'open' | 'inputs'>;
  readonly lease: number;
  /** Bytes of a followed stream, from the worker that the attempt was granted to. */
  readonly onChunk: (attempt: Attempt, stream: 'stdout' | 'stderr', offset: number, bytes: Buffer) => void;
  /** Sizes and bytes of followed files, in the same way. */
  readonly onFiles: (attempt: Attempt, message: Extract<FromWorker, { t: 'sizes' | 'piece' }>, bytes: Buffer) => void;
  /** Answers a running job's request to its home. */
  readonly onHome: (attempt: Attempt, request: HomeRequest, bytes: Buffer) => Promise<HomeAnswer>;
  readonly shells: Pick<CentralManagerShells, 'hear' | 'away' | 'startAtNode' | 'passFromNode'>;
  readonly log: (message: string, facts?: object) => void;
}

interface Connected {
  readonly instance: string;
  readonly channel: Channel<FromWorker, FromCentralManager>;
  readonly asking: Asking;
  readonly token: IssuedToken;
  readonly silence: WorkerSilence;
}

/**
 * The central manager's side of the workers' connections: admits workers that prove they know a token's secret, and
 * relays messages.
 */
export class CentralManagerWorkers {
  readonly #options: CentralManagerWorkersOptions;
  readonly #connected = new Map<string, Connected>();
  readonly #checks = new Checks<Connected>();
  readonly #awaited = new Set<(instance: string, asking: Asking) => void>();
  /** The connections of this machine's worker. */
  readonly #local = new Set<Connected['channel']>();
  #localWanted = true;

  constructor(options: CentralManagerWorkersOptions) {
    this.#options = options;
  }

  /** A worker has connected; `stream` is its connection, by whatever transport. */
  accept(stream: Duplex): void {
    const channel = new Channel<FromWorker, FromCentralManager>(stream, readFromWorker);
    const mine = nonce();
    let hello: Extract<FromWorker, { t: 'hello' }> | undefined;
    let token: IssuedToken | undefined;
    let instance: string | undefined;
    const late = setTimeout(() => channel.close('no token was presented in time'), HANDSHAKE_MS);
    let denied = false;
    const deny = (message: string) => {
      denied = true;
      this.#options.log('a worker was refused', { message });
      channel.send({ t: 'denied', message });
      channel.close(message);
    };
    channel.open(
      (message, bytes) => {
        if (instance !== undefined) return this.#take(instance, channel, message, bytes);
        if (message.t === 'hello' && !hello) {
          hello = message;
          const refusal = wireRefusal(message.version);
          if (refusal !== undefined) return deny(refusal);
          token = this.#options.tokens.find(message.token);
          // A worker without a valid token gets a challenge too, which does not reveal whether the token exists.
          const known = token ?? { id: message.token, secret: '00' };
          return channel.send({
            t: 'challenge',
            nonce: mine,
            proof: proof(known, 'central-manager', mine, message.nonce),
          });
        }
        if (message.t !== 'proof' || !hello) throw new Error('no proof arrived');
        if (!token || !isProof(message.proof, proof(token, 'worker', mine, hello.nonce)))
          return deny("the token is not one of this agent's, or it has expired");
        clearTimeout(late);
        if (!this.#options.tokens.bind(token, hello.instance)) return deny('another worker has already used its token');
        instance = identityOf(token, hello.instance);
        this.#welcome(instance, token, channel, message);
      },
      (message) => {
        clearTimeout(late);
        if (instance !== undefined) this.#lost(instance, channel, message);
        else if (!denied) this.#options.log('a worker was refused', { message });
      },
    );
  }

  /** Asks a worker; `undefined` while it is away. */
  askingOf(instance: string | undefined): Asking | undefined {
    return instance === undefined ? undefined : this.#connected.get(instance)?.asking;
  }

  /** What has a worker connect for an attempt's large results; `undefined` if it makes no such connections. */
  staging(instance: string | undefined, key: AttemptKey): (() => Promise<StagingLink | undefined>) | undefined {
    if (instance === undefined || !this.#makesLinks(instance)) return undefined;
    return async () => {
      const asking = this.askingOf(instance);
      return asking && this.#options.staging.open(instance, asking, key, 'results').catch(() => undefined);
    };
  }

  #makesLinks(instance: string): boolean {
    return this.#options.centralManager.collector.get(instance)?.texts[HAS_STAGING_LINKS] === 'true';
  }

  /**
   * Like `askingOf`, but waits for a worker that may be reconnecting, as all do after a restart of the central manager.
   */
  async whenBack(instance: string | undefined, patienceMs: number): Promise<Asking | undefined> {
    const here = this.askingOf(instance);
    if (here || instance === undefined) return here;
    return new Promise((resolve) => {
      const done = (asking: Asking | undefined) => {
        clearTimeout(timer);
        this.#awaited.delete(look);
        resolve(asking);
      };
      const look = (who: string, asking: Asking) => {
        if (who === instance) done(asking);
      };
      const timer = setTimeout(() => done(undefined), patienceMs);
      this.#awaited.add(look);
    });
  }

  send(instance: string, message: FromCentralManager, bytes?: Uint8Array): void {
    const connected = this.#connected.get(instance);
    if (message.t === 'start' && connected) this.#checks.plan(connected, 1);
    connected?.channel.send(message, bytes);
  }

  /** Checks for silent workers, every five seconds: a node that loses power does not close its connections. */
  tick(): void {
    for (const connected of this.#checks.next()) {
      const { instance, channel, silence } = connected;
      const worker = this.#options.centralManager.collector.get(instance);
      const found = silence.check(channel.heardAt, worker, this.#checks.last, performance.now());
      this.#checks.plan(connected, found.again);
      if (worker?.silent !== found.isSilent) this.#silence(instance, found.isSilent);
      if (found.isDead) channel.close('it has stopped reporting');
      // Its messages may take long to reach us; the pong tells it that we are here.
      else if (found.isAsked) channel.send({ t: 'pong', n: 0 });
    }
  }

  #pong({ channel, silence, token }: Connected, n: number): void {
    silence.rest = restOf(token, this.#connected.size);
    channel.send({ t: 'pong', n, ...(silence.rest !== undefined && { rest: silence.rest }) });
  }

  #silence(instance: string, silent: boolean): void {
    const { centralManager, log } = this.#options;
    const worker = centralManager.collector.get(instance);
    if (!worker || worker.silent === silent) return;
    worker.silent = silent;
    log(silent ? 'a worker is silent and gets no more jobs' : 'a worker reports again', { worker: worker.name });
    if (!silent) centralManager.negotiate();
  }

  /** When this machine's worker was last heard, by the monotonic clock; `undefined` if it is not connected. */
  get localHeardAt(): number | undefined {
    let last: number | undefined;
    for (const { heardAt } of this.#local) last = Math.max(last ?? 0, heardAt);
    return last;
  }

  close(): void {
    for (const { channel } of this.#connected.values()) channel.close('the agent is shutting down');
  }

  #welcome(
    instance: string,
    token: IssuedToken,
    channel: Channel<FromWorker, FromCentralManager>,
    message: Extract<FromWorker, { t: 'proof' }>,
  ): void {
    const { centralManager, agent, lease, log } = this.#options;
    const before = this.#connected.get(instance);
    const asking = new Asking((ask) => {
      channel.send(ask);
      return !channel.closed;
    });
    const silence = new WorkerSilence(channel.heardAt, this.#checks.last);
    const connected: Connected = { instance, channel, asking, token, silence };
    this.#connected.set(instance, connected);
    this.#checks.plan(connected, 1);
    if (before) this.#checks.drop(before);
    if (token.local) this.#local.add(channel);
    if (before) this.#local.delete(before.channel);
    before?.asking.end(ANOTHER);
    if (before) this.#options.shells.away(instance);
    before?.channel.close(ANOTHER);
    const source = inAd(message.ad);
    const said = (attribute: string) => oneLine(readString(source, attribute) ?? '').slice(0, MOST_NAME);
    const name = said('Name').replace(/^slot1@/, '') || instance;
    const host = said('Machine') || name;
    const worker = centralManager.collector.make(
      { instance, token: token.id, site: token.site, boot: message.boot, size: within(message.size, token) },
      { ...message.ad, ...known(token) },
      name,
      host,
    );
    channel.send({ t: 'welcome', agent, site: token.site, lease, ping: pingOf(token) });
    log('a worker connected', { worker: name, site: token.site, attempts: message.attempts.length });
    centralManager.join(worker, message.attempts);
    if (token.local && !this.#localWanted) this.#drain(instance);
    for (const look of this.#awaited) look(instance, asking);
  }

  #take(instance: string, channel: Channel<FromWorker, FromCentralManager>, message: FromWorker, bytes: Buffer): void {
    const { centralManager } = this.#options;
    const connected = this.#connected.get(instance);
    if (connected?.channel !== channel) return;
    this.#silence(instance, false);
    if (message.t === 'ping') this.#pong(connected, message.n);
    else if (message.t === 'answer') connected.asking.take(message, bytes);
    else if (message.t === 'ask') {
      if (message.what === 'blob') void this.#input(instance, channel, message);
      else if (message.what === 'proxy') this.#proxy(instance, channel, message);
      else if (message.what === 'home') void this.#home(instance, channel, message, bytes);
    } else if (message.t === 'chunk') {
      const { key, stream, offset } = message;
      const attempt = centralManager.streamed(instance, key, stream, offset + bytes.length);
      if (attempt) this.#options.onChunk(attempt, stream, offset, bytes);
    } else if (message.t === 'sizes' || message.t === 'piece') {
      const attempt = centralManager.get(message.key);
      if (attempt?.worker === instance) this.#options.onFiles(attempt, message, bytes);
    } else if (message.t === 'shell-out' || message.t === 'shell-over')
      this.#options.shells.hear(instance, message, bytes);
    else if (message.t === 'node-start') this.#options.shells.startAtNode(instance, message);
    else if (message.t === 'shell-in' || message.t === 'shell-close')
      this.#options.shells.passFromNode(instance, message, bytes);
    else if (message.t === 'ad') {
      const { size } = message;
      const { token } = connected;
      const ad = { ...message.ad, ...known(token) };
      centralManager.hear(instance, { t: 'ad', ad, ...(size && { size: within(size, token) }) }, bytes);
    } else centralManager.hear(instance, message, bytes);
  }

  /** Sends an input, only for attempts granted to this worker. */
  async #input(
    instance: string,
    channel: Channel<FromWorker, FromCentralManager>,
    ask: Extract<FromWorker, { t: 'ask'; what: 'blob' }>,
  ): Promise<void> {
    const { centralManager, specOf, staging } = this.#options;
    const granted = () => (centralManager.get(ask.key)?.worker === instance ? specOf(ask.key) : undefined);
    try {
      const spec = granted();
      if (!spec) throw new Error(`${ask.key} was not granted to this worker`);
      const asking = this.askingOf(instance);
      const isLarge = (blobOf(spec, ask.sha256)?.bytes ?? 0) >= WORTH_A_LINK;
      // The answer to its first question tells it whether there is a connection.
      if (isLarge && asking && this.#makesLinks(instance)) await staging.inputs(instance, asking, ask.key, granted);
      channel.send({ t: 'answer', id: ask.id, ok: true }, await inputPiece(spec, ask));
    } catch (thrown) {
      channel.send({ t: 'answer', id: ask.id, ok: false, message: asError(thrown).message });
    }
  }

  /** Signs a proxy derived from the job's, for a key that the worker generated; only for attempts granted to it. */
  #proxy(
    instance: string,
    channel: Channel<FromWorker, FromCentralManager>,
    { id, key, name, request }: Extract<FromWorker, { t: 'ask'; what: 'proxy' }>,
  ): void {
    const { centralManager, specOf, proxies } = this.#options;
    try {
      const spec = centralManager.get(key)?.worker === instance ? specOf(key) : undefined;
      if (spec?.proxy !== name) throw new Error(`${key} was not granted to this worker with the proxy ${name}`);
      channel.send({ t: 'answer', id, ok: true }, Buffer.from(proxies.sign(name, request)));
    } catch (thrown) {
      channel.send({ t: 'answer', id, ok: false, message: asError(thrown).message });
    }
  }

  /** Passes on a running job's request to its home, only for attempts granted to this worker that asked for it. */
  async #home(
    instance: string,
    channel: Channel<FromWorker, FromCentralManager>,
    { id, key, request }: Extract<FromWorker, { t: 'ask'; what: 'home' }>,
    sent: Buffer,
  ): Promise<void> {
    const { centralManager, specOf, onHome } = this.#options;
    try {
      const attempt = centralManager.get(key);
      if (attempt?.worker !== instance || (specOf(key)?.ioProxy !== true && !WORKERS_OWN.has(request.op)))
        throw new Error(`${key} was not granted to this worker with want_io_proxy`);
      const { result, bytes } = await onHome(attempt, request, sent);
      channel.send({ t: 'answer', id, ok: true, result }, bytes);
    } catch (thrown) {
      channel.send({ t: 'answer', id, ok: false, message: asError(thrown).message });
    }
  }

  #lost(instance: string, channel: Channel<FromWorker, FromCentralManager>, message: string): void {
    const connected = this.#connected.get(instance);
    if (connected?.channel !== channel) return;
    this.#connected.delete(instance);
    this.#checks.drop(connected);
    this.#local.delete(channel);
    connected.asking.end(message);
    this.#options.shells.away(instance);
    this.#options.log('a worker disconnected', { instance, message });
    this.#options.centralManager.leave(instance);
  }

  /**
   * Whether this machine's worker is wanted; if not, it takes no more jobs, and ends when those it has are finished.
   */
  set localWanted(wanted: boolean) {
    this.#localWanted = wanted;
    if (!wanted) for (const [instance, { token }] of this.#connected) if (token.local) this.#drain(instance);
  }

  #drain(instance: string): void {
    const worker = this.#options.centralManager.collector.get(instance);
    if (worker) worker.draining = true;
    this.send(instance, { t: 'drain', now: false, message: 'this machine is out of the pool' });
  }

  /**
   * Closes the connections of workers that are known to be dead: anyone who still speaks as one of them is no longer
   * heard.
   */
  part(token: string, message: string): void {
    for (const { instance } of this.byToken(new Set([token]))) this.#connected.get(instance)?.channel.close(message);
  }

  /** The workers admitted by one of these tokens. */
  byToken(tokens: ReadonlySet<string>): Worker[] {
    return [...this.#options.centralManager.collector.all()].filter((worker) => tokens.has(worker.token));
  }
}

/**
 * The worker's identity to the central manager: the name that it gave itself, qualified by its token. A token therefore
 * gives no access to what was granted to a worker admitted by another token, whatever name is given.
 */
export function identityOf(token: Pick<IssuedToken, 'id'>, instance: string): string {
  return `${token.id}/${instance}`;
}

/**
 * Its site and pilot follow from its token, whatever the worker says. That questions of partners' jobs are passed on to the gateway
 * (`partner_inputs`) is said for the gateway, which may be beside a central manager of an earlier build.
 */
function known({ id, site, local }: IssuedToken): AttrTexts {
  return { GryphusSite: quoted(site), GryphusPilot: local ? null : quoted(id), GryphusAsksGateway: 'true' };
}

/** It contributes no more cores than its token allows. */
function within(size: Size, { cpus = Number.POSITIVE_INFINITY }: IssuedToken): Size {
  return { ...size, cpus: Math.min(size.cpus, cpus) };
}
