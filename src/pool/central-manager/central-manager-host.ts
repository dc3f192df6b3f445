import { existsSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { asError } from '../../errors.ts';
import type { AttemptKey } from '../../job/ids.ts';
import { CentralManager } from './central-manager.ts';
import { CentralManagerClients } from './client-connections.ts';
import { CentralManagerShells } from './central-manager-shells.ts';
import { compacted, type CentralManagerEntry, ENTRY, recover, withoutAttempts } from './central-manager-journal.ts';
import { CentralManagerWorkers } from './worker-connections.ts';
import { StagingLinks } from './staging-links.ts';
import { Journal } from '../host/journal.ts';
import type { PoolPlaces } from '../host/places.ts';
import { Proxies } from '../host/proxies.ts';
import type { Tokens } from '../wire/tokens.ts';
import { derived, type RunSpec } from '../wire/wire.ts';
import { acceptHome } from '../../reverse-connection/secure.ts';
import { listenAt } from '../../util/listen-at.ts';

/** The journal is rewritten when it exceeds this size, in bytes. */
const LARGE = 64 << 20;
const TICK_MS = 5000;
/** How often the priorities of owners is written to the journal, in milliseconds. */
const SAVE_MS = 60_000;
/**
 * How many seconds a job may run without contact to the central manager, unless it says otherwise (HTCondor's 40
 * minutes).
 */
export const LEASE_SECONDS = 2400;

export interface CentralManagerHostOptions {
  readonly places: PoolPlaces;
  readonly tokens: Tokens;
  readonly agent: string;
  readonly log: (message: string, facts?: object) => void;
  /** The journal cannot be written: nothing more may be promised. */
  readonly onBroken: (error: Error) => void;
}

/** A central manager with its journal, its sockets and all connections. */
export class CentralManagerHost {
  readonly centralManager: CentralManager;
  readonly workers: CentralManagerWorkers;
  readonly #clients: CentralManagerClients;
  readonly #journal: Journal<CentralManagerEntry>;
  readonly #servers: (() => void)[] = [];
  readonly #staging = new StagingLinks();
  readonly #keyOf: (token: string) => Buffer | undefined;
  readonly #log: CentralManagerHostOptions['log'];
  readonly #timer: NodeJS.Timeout;
  #savedAt = 0;

  constructor({ places, tokens, agent, log, onBroken }: CentralManagerHostOptions) {
    this.#log = log;
    this.#keyOf = (id) => {
      const token = tokens.find(id, Date.now() / 1000);
      return token && Buffer.from(token.secret, 'hex');
    };
    const written = recover(Journal.read(places.journal, ENTRY));
    const isRestored = existsSync(places.restored);
    const recovered = isRestored ? withoutAttempts(written) : written;
    // Whoever asked for an attempt must see that it is not known any more.
    if (isRestored) rmSync(places.journal, { force: true });
    this.#journal = new Journal<CentralManagerEntry>(places.journal, onBroken, compacted(recovered));
    rmSync(places.restored, { force: true });
    this.centralManager = new CentralManager(
      {
        journal: { add: (entry) => this.#journal.add(entry), whenSaved: (call) => this.#journal.whenSaved(call) },
        toWorker: (worker, message) => this.workers.send(worker, message),
        toClient: (client, report, attempt) => this.#clients.report(client, report, attempt),
        now: Date.now,
        clock: () => performance.now(),
        log,
      },
      recovered,
    );
    const shells = new CentralManagerShells({
      centralManager: this.centralManager,
      toWorker: (instance, message, bytes) => this.workers.send(instance, message, bytes),
      isHere: (instance) => this.workers.askingOf(instance) !== undefined,
    });
    this.workers = new CentralManagerWorkers({
      shells,
      agent,
      centralManager: this.centralManager,
      tokens: {
        find: (id) => tokens.find(id, Date.now() / 1000),
        bind: (token, instance) => tokens.bind(token, instance),
      },
      specOf: (key) => this.#specOf(key as AttemptKey),
      proxies: new Proxies(places.proxies),
      staging: this.#staging,
      lease: LEASE_SECONDS,
      onHome: (attempt, request, bytes) => this.#clients.home(this.centralManager.whole(attempt), request, bytes),
      onChunk: (attempt, stream, offset, bytes) => this.#clients.chunk(attempt, stream, offset, bytes),
      onFiles: (attempt, message, bytes) => this.#clients.files(attempt, message, bytes),
      log,
    });
    this.#clients = new CentralManagerClients({
      centralManager: this.centralManager,
      workers: this.workers,
      shells,
      log,
    });
    this.#timer = setInterval(() => {
      this.workers.tick();
      this.#clients.tick();
      this.centralManager.tick();
      this.#savePriorities();
      this.#compact();
    }, TICK_MS);
    log('the central manager is open', { attempts: recovered.attempts.size });
  }

  /** Listens on its sockets. */
  async listen({ clientSocket, workerSocket, homeSocket }: PoolPlaces): Promise<void> {
    await this.#listen(homeSocket, (socket) => void this.#comeHome(socket));
    await this.#listen(workerSocket, (socket) => void this.#comeHere(socket));
    await this.#listen(clientSocket, (socket) => this.#clients.accept(socket));
  }

  close(): void {
    clearInterval(this.#timer);
    this.centralManager.savePriorities();
    for (const end of this.#servers) end();
    this.#clients.close();
    this.workers.close();
    this.#staging.close();
  }

  async #listen(path: string, accept: (socket: Socket) => void): Promise<void> {
    this.#servers.push(await listenAt(createServer(accept), path));
  }

  /** A worker of this machine connects, or one that has shown its token at the agent's port. */
  async #comeHere(socket: Socket): Promise<void> {
    if (!(await this.#staging.take(socket))) this.workers.accept(socket);
  }

  /** A worker connects from elsewhere, through any of the reverse connections. */
  async #comeHome(socket: Socket): Promise<void> {
    try {
      if (await this.#staging.take(socket)) return;
      const { link } = await acceptHome(socket, { keyOf: (id) => this.#keyOf(id) });
      this.workers.accept(link);
    } catch (thrown) {
      this.#log('a worker was refused', { message: asError(thrown).message });
    }
  }

  #specOf(key: AttemptKey): RunSpec | undefined {
    const spec = this.centralManager.get(key)?.request.spec;
    if (!spec || !('base' in spec)) return spec;
    const base = this.centralManager.baseOf(spec.base);
    return base && derived(base, spec);
  }

  /** A crash loses no more of the owners' priorities than this. */
  #savePriorities(): void {
    const now = performance.now();
    if (now - this.#savedAt < SAVE_MS) return;
    this.#savedAt = now;
    this.centralManager.savePriorities();
  }

  #compact(): void {
    if (this.#journal.size < LARGE || !this.#journal.idle) return;
    this.#journal.rewrite(compacted(this.centralManager.snapshot()));
  }
}
