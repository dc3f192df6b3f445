import { join } from 'node:path';
import { type Address, parseAddress } from '../config/address.ts';
import { AgreementBook } from '../config/agreements.ts';
import { followSettings } from '../config/follow.ts';
import { loadPaths } from '../config/paths.ts';
import { asError } from '../errors.ts';
import { openLog } from '../log.ts';
import { takeOver } from '../pool/host/take-over.ts';
import { poolPlaces } from '../pool/host/places.ts';
import { Tokens } from '../pool/wire/tokens.ts';
import { openPortWay, type PortWay } from '../reverse-connection/port-way.ts';
import { eachSecond } from '../util/each-second.ts';
import { ensurePrivateDir } from '../util/private-file.ts';
import { endOnSignal, outliveReader, runDaemon } from '../util/run-daemon.ts';
import { spreadNet } from '../util/process-net.ts';
import { endWithState } from '../queue/api.ts';
import { dialPartner } from './dial.ts';
import { flockPlaces, STATUS_SECONDS, writeFlockStatus } from './flock-state.ts';
import { Gateway } from './gateway.ts';

/** How often the port is tried again, in milliseconds. */
const PORT_AGAIN_MS = 5000;
/** How often the status is looked at, in seconds. */
const SHOW_SECONDS = 2;
/** File descriptors that strangers at the port may use. */
const DESCRIPTORS = 1024;

/** The gateway's process, which the Scheduler starts while there are agreements; its only argument is the agent's id. */
async function main(agent: string): Promise<void> {
  const paths = loadPaths();
  const { settings, follow, close: closeSettings } = await followSettings(paths);
  const log = openLog(join(paths.logDir, 'flock.log'), settings['log.level'], settings['log.max_size']);
  const say = (message: string, facts?: object) => log.info(facts ?? {}, message);
  const places = flockPlaces(paths);
  ensurePrivateDir(places.dir);
  await takeOver(join(places.dir, 'gateway.pid'), 'gateway');
  const pool = poolPlaces(paths);
  const ended = new Promise<Error | undefined>((resolve) => {
    endOnSignal(() => resolve(undefined));
    process.once('disconnect', () => resolve(undefined));
    spreadNet({ onFault: (message, error) => log.error({ err: error }, message), end: resolve });
    endWithState(paths.stateDir, () => resolve(undefined));
    broken = resolve;
  });
  const gateway = new Gateway({
    agent,
    places,
    tokens: new Tokens(pool.dir),
    clientSocket: pool.clientSocket,
    workerSocket: pool.workerSocket,
    dial: dialPartner,
    here: () => port.here,
    onBroken: (error) => broken(error),
    log: say,
  });
  const book = new AgreementBook(paths, (message) => log.warn(message));
  const port = new ListeningPort(gateway, say);
  follow({ wrong: (message) => log.warn(message) });
  let written = '';
  let writtenAt = 0;
  const look = async () => {
    if (await book.look()) gateway.follow(book.partners, book.names);
    await port.want(settings['flock.listen']);
  };
  const show = () => {
    const problems = [...book.problems.values(), port.trouble ?? [], gateway.trouble ?? []].flat();
    const status = {
      pid: process.pid,
      ...(port.port === undefined ? {} : { port: port.port }),
      ...(problems.length === 0 ? {} : { trouble: problems.join(' ') }),
      partners: gateway.status(),
    };
    const text = JSON.stringify(status);
    const now = Date.now() / 1000;
    if (text === written && now - writtenAt < STATUS_SECONDS / 2) return;
    written = text;
    writtenAt = now;
    writeFlockStatus(places, { at: now, ...status });
  };
  let looking = Promise.resolve();
  const inTurn = (work: () => void | Promise<void>) => () => {
    looking = looking.then(work).catch((thrown: unknown) => say('a look failed', { message: asError(thrown).message }));
  };
  const stops = [eachSecond(inTurn(look)), eachSecond(inTurn(show), { every: SHOW_SECONDS })];
  say('the gateway is open');
  const error = await ended;
  for (const stop of stops) stop();
  closeSettings();
  port.close();
  gateway.close();
  if (error) throw error;
  say('ended');
}

/** The port at which partners connect, if `flock.listen` names one. */
class ListeningPort {
  readonly #gateway: Gateway;
  readonly #log: (message: string, facts?: object) => void;
  #open: PortWay | undefined;
  #listen: string | undefined;
  #triedAt = Number.NEGATIVE_INFINITY;
  trouble: string | undefined;

  constructor(gateway: Gateway, log: (message: string, facts?: object) => void) {
    this.#gateway = gateway;
    this.#log = log;
  }

  get port(): number | undefined {
    return this.#open?.port;
  }

  /** Where this machine's own processes reach it. */
  get here(): Address | undefined {
    if (!this.#open || this.#listen === undefined) return undefined;
    const { host } = parseAddress(this.#listen, 'flock.listen');
    return { host: /^(0\.0\.0\.0|[0:]*)$/.test(host) ? 'localhost' : host, port: this.#open.port };
  }

  async want(listen: string | undefined): Promise<void> {
    if (listen !== this.#listen) this.close();
    this.#listen = listen;
    if (listen === undefined || this.#open || performance.now() - this.#triedAt < PORT_AGAIN_MS) return;
    this.#triedAt = performance.now();
    try {
      this.#open = await openPortWay({
        ...parseAddress(listen, 'flock.listen'),
        welcome: ({ worker, link }) => this.#gateway.welcome(worker, link),
        keyOf: (id) => this.#gateway.keyOf(id),
        descriptors: DESCRIPTORS,
        onTurnedAway: (message) => this.#log('refused at the port', { message }),
      });
      this.trouble = undefined;
      this.#log('partners can connect', { listen, port: this.#open.port });
    } catch (thrown) {
      this.trouble = asError(thrown).message;
    }
  }

  close(): void {
    this.#open?.close();
    this.#open = undefined;
    this.trouble = undefined;
    this.#triedAt = Number.NEGATIVE_INFINITY;
  }
}

let broken: (error: Error) => void = () => undefined;
const agent = process.argv[2];
if (agent === undefined) {
  process.stderr.write('The gateway is started by the Scheduler.\n');
  process.exit(2);
}
outliveReader();
runDaemon(main(agent));
