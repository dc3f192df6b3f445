import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { asError } from '../../errors.ts';
import { writeWhole } from '../../util/private-file.ts';
import { sinceBootMs } from '../../util/boot-clock.ts';
import { steadyClock } from '../../util/steady-clock.ts';
import { isAlive, processIdentity } from '../../util/process-identity.ts';
import { dialHome } from '../../reverse-connection/dial.ts';
import { Accounts } from './accounts.ts';
import type { AttemptKey } from '../../job/ids.ts';
import { CHIRP_ERROR, type HomeAnswer, type HomeRequest } from '../../site/chirp.ts';
import { ChirpProxies } from './chirp/chirp-proxies.ts';
import { Containers } from './containers.ts';
import { WorkerDirectResults } from './direct-results.ts';
import { ExecuteDir } from './execute-dir.ts';
import { JobUsers } from './job-users.ts';
import type { CheckpointEngines } from './engines/engines.ts';
import type { NativeHelper } from '../host/remote-io-helper.ts';
import { holderOf, workerFile } from '../host/pid-files.ts';
import type { LauncherScripts } from './launchers/launchers.ts';
import { RemoteStarts } from './launchers/remote-starts.ts';
import { Link } from './link.ts';
import { changingAd } from '../host/machine.ts';
import { bootId } from '../../util/boot-clock.ts';
import { ownerControl } from './open-owner-control.ts';
import { PartnerDial } from './partner-dial.ts';
import { PartnerInputs } from './partner-inputs.ts';
import { Proxies, WorkerProxies } from '../host/proxies.ts';
import { isInVain, listedFiles, readPiece } from './results.ts';
import { SlotAccounts } from './slot-accounts.ts';
import { WorkerStagingLinks } from './staging-links.ts';
import { Shells } from './shells.ts';
import { directDialling } from './remote-io/direct-way.ts';
import { killAll } from './stopping.ts';
import { proxiesOf } from './stage.ts';
import { Startd } from './startd.ts';
import { Strangers } from './strangers.ts';
import type { StartdOptions } from './startd-options.ts';
import { usageOf } from './usage.ts';
import type { WireAsk, FromWorker } from '../wire/wire.ts';
import type { Scripts } from './worker-claims.ts';
import type { WorkerConfig } from '../wire/worker-config.ts';
import { WorkerMachine } from './worker-machine.ts';
import { ownUser } from '../../util/own-user.ts';

/** The exit statuses of a worker's process. */
export const WORKER_EXIT = { done: 0, denied: 77, another: 75, broken: 70 } as const;

const AD_MS = 30_000;
const LOOK_MS = 500;
/**
 * The longest wait before reconnecting to a central manager on this machine, in milliseconds: trying is cheap, and the
 * first job should not have to wait.
 */
const LOCAL_RETRY_MS = 500;
/** It ends after this many checks in a row that find its directory missing or held by another worker. */
const ABSENT_LOOKS = 4;
/** How many seconds its jobs then have to end. */
const VANISH_SECONDS = 4;
/**
 * How many seconds a worker of the agent's own machine that is told to end waits for its jobs, unless one of them is being checkpointed:
 * at a shutdown they are told as well. What still runs goes on without it, as after a crash.
 */
const TOLD_SECONDS = 4;
/** By which it is told to end: systemd sends two to all processes of a session. */
const ASKS = ['SIGTERM', 'SIGHUP', 'SIGINT'] as const;
/**
 * This many seconds before its allocation ends, plus the time that its runs may take to end, it takes no more jobs and
 * vacates those that run, so that their results can come home in time.
 */
const LAST_SECONDS = 50;

/** Runs one worker, from its start to its end; resolves with the reason why it ended. */
export async function runWorker(
  config: WorkerConfig,
  options: {
    /** The configuration file. */
    readonly file: string;
    readonly scripts: Scripts;
    /** By which parallel jobs start their processes. */
    readonly launchers?: LauncherScripts;
    /** `env` is the part of the worker's `environment` that jobs see. */
    readonly env: NodeJS.ProcessEnv;
    readonly environment: NodeJS.ProcessEnv;
    readonly log: (message: string) => void;
    /** The file in which the administrator of the machine sets the policy. */
    readonly rootPolicy?: string;
    /** What checkpoints jobs. */
    readonly checkpoints?: CheckpointEngines;
    /** What answers jobs' calls about files at home. */
    readonly remoteIo?: NativeHelper;
  },
): Promise<{ readonly exit: number; readonly message: string }> {
  const { dir } = config;
  if (!existsSync(dir)) mkdirSync(dir, { mode: 0o700 });
  if (!lock(dir)) return { exit: WORKER_EXIT.another, message: `another worker works in ${dir}` };
  const instance = instanceOf(dir);
  const machine = await new WorkerMachine({ ...options, config, instance }).open();
  // The agent on this machine sleeps when this worker does; another agent's patience goes on.
  const clock = config.socket === undefined ? sinceBootMs : () => performance.now();
  const now = steadyClock(clock);
  let idleSince = now();
  let absent = 0;
  const containers = new Containers({ dir, ...options });
  return new Promise((resolve) => {
    const say: StartdOptions['say'] = (message, bytes, unhurried) => link.say(message, bytes, unhurried);
    const here = new Proxies(config.proxies ?? join(dir, 'proxies'));
    const proxies = new WorkerProxies(
      join(dir, 'proxies'),
      async (name, key, request) => (await link.asking.ask({ what: 'proxy', key, name, request })).bytes,
    );
    const askHome = async (key: AttemptKey, request: HomeRequest, bytes?: Uint8Array): Promise<HomeAnswer> => {
      const { result = CHIRP_ERROR.unknown, bytes: got } = await link.asking.ask({ what: 'home', key, request }, bytes);
      return { result, bytes: got };
    };
    const chirp = new ChirpProxies(({ key }, request, bytes) => askHome(key, request, bytes), directDialling(config));
    const remote =
      options.launchers &&
      new RemoteStarts({
        scripts: options.launchers,
        runs: () => startd.runs,
        here: (order, bytes, tell) => shells.take(order, bytes, tell),
        away: (message, bytes) => link.say(message, bytes),
      });
    const owner = ownerControl({
      dir,
      chirp,
      machine,
      environment: options.environment,
      runs: () => startd.runs,
      say,
      announce: () => say({ t: 'ad', ad: { ...machine.ad, ...owner.ad() } }),
      log: options.log,
      clock: now,
    });
    const accounts = accountsOf(config, machine, instance, options.environment);
    const pull: StartdOptions['pull'] = (key) => async (blob, offset, bytes) =>
      (await link.asking.ask({ what: 'blob', key, sha256: blob.sha256, offset, bytes })).bytes;
    const partnerDial = new PartnerDial();
    const staging = new WorkerStagingLinks(config, (key) => startd.find(key));
    const startd = new Startd({
      dir,
      accounts,
      machine,
      ...(config.diskKb === undefined ? {} : { diskKb: config.diskKb }),
      env: options.env,
      scripts: options.scripts,
      sharesHome: config.sharesHome === true,
      containers,
      groups: machine.groups,
      checkpoints: options.checkpoints,
      remoteIo: options.remoteIo,
      chirp,
      remote,
      pull,
      partnerInputs: new PartnerInputs({ ask: askHome, dial: partnerDial, pull }),
      staging,
      proxyOf: config.proxies === undefined ? (name, key) => proxies.of(name, key) : (name) => here.path(name),
      say,
      log: options.log,
      owner,
    });
    const link = new Link({
      token: { id: config.token, secret: config.secret },
      instance,
      boot: bootId(),
      size: () => machine.size,
      clock,
      dial: () => dial(config),
      ...(config.socket === undefined ? {} : { longestRetryMs: LOCAL_RETRY_MS }),
      longestRest: (config.loneSeconds ?? Number.POSITIVE_INFINITY) / 3,
      ad: () => ({ ...machine.ad, ...containers.ad(), ...accounts.ad(), ...changes() }),
      held: () => startd.held(),
      take: (message, bytes) => {
        if (message.t === 'ask') void answer(startd, { direct, staging }, message, say);
        else if (message.t === 'shell-out' || message.t === 'shell-over') remote?.hear(message, bytes);
        else if ('shell' in message) shells.take(message, bytes);
        else {
          startd.take(message);
          if (message.t === 'forget') for (const key of message.keys) direct.end(key, 'it is over');
        }
      },
      onUp: (site) => {
        options.log(`connected to the agent, as a worker of ${site}`);
        owner.tellAll();
      },
      onDown: (message) => {
        chirp.cut();
        options.log(`the agent is not reachable: ${message}`);
        startd.dropWaiting();
        shells.close();
      },
      onDenied: (message) => end(WORKER_EXIT.denied, message),
    });
    const shells = new Shells({
      become: (user) => accounts.command(user),
      find: (key) => startd.find(key),
      env: options.env,
      say,
      backlog: () => link.backlog,
    });
    const direct = new WorkerDirectResults((key) => startd.find(key), partnerDial);
    const changes = () => ({ ...changingAd(now(), config.endsAt), ...owner.ad(), ...startd.space.ad() });
    let toldAdAt = now();
    const tell = () => {
      toldAdAt = now();
      say({ t: 'ad', ad: changes() });
    };
    const advertise = () => now() - toldAdAt >= link.rest && tell();
    const timers = [setInterval(advertise, AD_MS), setInterval(look, LOOK_MS)];
    let toldAt: number | undefined;
    const stop = () => {
      toldAt ??= now();
      startd.drain(true, 'its worker was asked to end');
      look();
    };
    for (const signal of ASKS) process.on(signal, stop);
    owner.look();
    link.open();
    containers.find().then(
      () => say({ t: 'ad', ad: containers.ad() }),
      (thrown: unknown) => options.log(`cannot look for container runtimes: ${asError(thrown).message}`),
    );

    /** Nobody can fetch its results any more: gives its jobs a moment to end, then kills them. */
    async function vanish(): Promise<void> {
      clearInterval(timers.pop());
      startd.drain(true, 'its directory is gone');
      for (const until = now() + VANISH_SECONDS; startd.busy > 0 && now() < until; )
        await new Promise((resume) => setTimeout(resume, LOOK_MS));
      await killAll(new Set([...startd.runs].map((run) => run.key)));
      end(WORKER_EXIT.done, 'its directory is gone');
    }

    function look(): void {
      absent = isHeld(dir, config.socket === undefined ? undefined : instance) ? 0 : absent + 1;
      if (absent === ABSENT_LOOKS) return void vanish();
      startd.space.look(tell);
      if (machine.look()) say({ t: 'ad', ad: machine.ad, size: machine.size });
      owner.look();
      if (proxies.isDue()) void proxies.renew(proxiesOf(startd.runs));
      if (!link.isUnsure) startd.endLeases(link.silence);
      if (config.endsAt !== undefined && !startd.draining && config.endsAt - now() < LAST_SECONDS + startd.grace)
        startd.drain(true, 'the allocation of its worker ends');
      if (startd.waiting > 0) idleSince = now();
      const idle = now() - idleSince;
      if (startd.draining && (startd.waiting === 0 || (startd.busy === 0 && !link.up)))
        return end(WORKER_EXIT.done, 'drained');
      if (toldAt !== undefined && config.socket !== undefined && now() - toldAt > TOLD_SECONDS && !saves()) {
        options.log('asked to end; what still runs is left to the next worker');
        process.exit(WORKER_EXIT.done);
      }
      if (config.idleSeconds !== undefined && idle > config.idleSeconds)
        return end(WORKER_EXIT.done, `nothing to do for ${config.idleSeconds} s`);
      if (config.loneSeconds !== undefined && startd.busy === 0 && link.silence > config.loneSeconds)
        end(WORKER_EXIT.done, `without contact to the agent for ${config.loneSeconds} s`);
    }

    function saves(): boolean {
      return [...startd.runs].some((run) => run.saving !== undefined && run.phase !== 'ended');
    }

    function end(exit: number, message: string): void {
      for (const timer of timers) clearInterval(timer);
      for (const signal of ASKS) process.off(signal, stop);
      shells.close();
      direct.close();
      staging.close();
      owner.close();
      startd.close();
      containers.close();
      chirp.close();
      remote?.close();
      machine.groups?.close();
      accounts.close(startd.busy === 0);
      link.end(message);
      resolve({ exit, message });
    }
  });
}

function accountsOf(
  { dir, execute }: WorkerConfig,
  machine: WorkerMachine,
  instance: string,
  environment: NodeJS.ProcessEnv,
): Accounts {
  const users = new JobUsers({
    runAs: () => machine.runAs,
    isRoot: process.getuid?.() === 0,
    self: () => ownUser().username,
    path: environment['PATH'],
    slots: new SlotAccounts(dir),
  });
  const executeDir = new ExecuteDir({ configured: execute, workerDir: dir, instance });
  const { uid, username, homedir } = ownUser();
  const strangers = new Strangers({
    isRoot: uid === 0,
    uid,
    userName: username,
    path: environment['PATH'],
    hidden: [...new Set([homedir, dirname(dirname(dir)), dir])],
    execute: executeDir.path,
    waiter: join(dir, 'waiter'),
    account: (runAs, used) => users.forStranger(runAs, used),
    openExecute: () => executeDir.open(),
  });
  return new Accounts(users, executeDir, strangers);
}

/** Connects to the central manager through its socket or a reverse connection. */
function dial({ socket, token, secret, ways = [], waysFile }: WorkerConfig): Promise<Duplex> {
  if (socket === undefined)
    return dialHome({ worker: token, key: secret, ways: [...ways], ...(waysFile === undefined ? {} : { waysFile }) });
  return new Promise((resolve, reject) => {
    const made = connect({ path: socket });
    made.once('connect', () => resolve(made));
    made.once('error', reject);
  });
}

async function answer(
  startd: Startd,
  links: { readonly direct: WorkerDirectResults; readonly staging: WorkerStagingLinks },
  ask: WireAsk,
  say: (message: FromWorker, bytes?: Uint8Array) => void,
): Promise<void> {
  if (ask.what === 'usage') {
    const usage = usageOf(ask.keys.flatMap((key) => startd.find(key) ?? []));
    return say({ t: 'answer', id: ask.id, ok: true, usage });
  }
  const run = startd.find(ask.key);
  const dir = run?.dir;
  try {
    if (ask.what === 'direct' || ask.what === 'staging') {
      if (ask.what === 'staging') await links.staging.open(ask);
      else if (ask.to) await links.direct.open(ask.key, ask.to);
      else links.direct.end(ask.key, 'the agreement is over');
      return say({ t: 'answer', id: ask.id, ok: true });
    }
    if (!dir) {
      const message = `the files of ${ask.key} are not there any more`;
      return say({ t: 'answer', id: ask.id, ok: false, refused: true, message });
    }
    if (ask.what === 'read')
      return say({ t: 'answer', id: ask.id, ok: true }, await readPiece(dir, ask.path, ask.offset, ask.bytes));
    if (ask.what !== 'files') throw new Error(`'${ask.what}' is not supported here`);
    say({ t: 'answer', id: ask.id, ok: true, ...(await listedFiles(dir, run.names, ask)) });
  } catch (thrown) {
    say({
      t: 'answer',
      id: ask.id,
      ok: false,
      message: asError(thrown).message,
      ...(isInVain(thrown) && { refused: true }),
    });
  }
}

/** Ensures one worker per directory: the file identifies the process; that of a dead process does not count. */
function lock(dir: string): boolean {
  const file = workerFile(dir);
  const mine = JSON.stringify(processIdentity());
  for (let turn = 0; turn < 2; turn++) {
    try {
      writeFileSync(file, mine, { flag: 'wx', mode: 0o600 });
      return true;
    } catch {
      const other = holderOf(file);
      if (other && other.pid !== process.pid && isAlive(other)) return false;
      writeFileSync(file, mine, { mode: 0o600 });
      return true;
    }
  }
  return false;
}

/**
 * Whether the directory still exists and belongs to this worker. At a site, age-based cleaning of files in it does not
 * matter.
 */
function isHeld(dir: string, instance: string | undefined): boolean {
  const other = holderOf(workerFile(dir));
  if (other && other.pid !== process.pid && isAlive(other)) return false;
  if (instance === undefined) return existsSync(dir);
  try {
    return readFileSync(join(dir, 'instance'), 'utf8').trim() === instance;
  } catch {
    return false;
  }
}

function instanceOf(dir: string): string {
  const file = join(dir, 'instance');
  if (!existsSync(file)) writeWhole(file, randomBytes(9).toString('base64url'));
  return readFileSync(file, 'utf8').trim();
}
