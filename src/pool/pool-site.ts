import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { GryphusError } from '../errors.ts';
import type { AttrTexts } from '../job/attrs.ts';
import type { AttemptKey } from '../job/ids.ts';
import { isParallel, togetherWith } from '../job/parallel-node.ts';
import { readBoolean, readNumber, readString } from '../job/values.ts';
import type {
  AttemptSpec,
  Capacity,
  Chunk,
  FetchOutcome,
  FetchRequest,
  FileSize,
  Outcome,
  Outcomes,
  Piece,
  PollAnswer,
  PollRequest,
  Report,
  Site,
  SiteFacts,
} from '../site/contract.ts';
import { CHIRP_ERROR } from '../site/chirp.ts';
import { type AttemptRequest, attemptRequest, type ToClient } from './wire/client-wire.ts';
import { CentralManagerClient } from './central-manager-client.ts';
import { Proxies } from './host/proxies.ts';
import { requestedOthers } from './wire/ads.ts';
import { faultsOf } from './wire/read-message.ts';
import { sizeOf } from './wire/request-size.ts';
import type { RunSpec } from './wire/wire.ts';

export interface PoolSiteOptions {
  readonly name: string;
  /** The central manager's socket for clients. */
  readonly socket: string;
  /** Whose jobs these are: a GridManager's identity. */
  readonly client: string;
  /** The directory of proxies delegated to the pool. */
  readonly proxies: string;
}

/**
 * How long to wait for the central manager, in milliseconds: it starts with the first job, as its GridManager does, and
 * again after a crash.
 */
const PATIENCE_MS = 10_000;

/** The minimum time between two answers with news, in milliseconds. */
const GATHER_MS = 25;

/**
 * How many seconds a job may run without contact to the central manager, unless it says otherwise (HTCondor's
 * job_lease_duration).
 */
const LEASE_SECONDS = 2400;

/** The pool as a site like any other, except that it pushes its news. */
export function openPoolSite({ name, socket, client, proxies }: PoolSiteOptions): Site {
  const delegated = new Proxies(proxies);
  let generation = 0;
  let answers = 0;
  let answeredAt = Number.NEGATIVE_INFINITY;
  let reports = new Map<AttemptKey, Report>();
  /** The reports of the last answer, kept until the next poll shows that they were recorded. */
  let kept = new Map<AttemptKey, Report>();
  let chunks: Chunk[] = [];
  let sizes: FileSize[] = [];
  let pieces: Piece[] = [];
  let unanswered: AttemptKey[] = [];
  let wake: () => void = () => undefined;
  let answerJob: Parameters<NonNullable<Site['answerJobs']>>[0] | undefined;
  const followed = new Map<AttemptKey, { stdout: number; stderr: number }>();
  const centralManager = new CentralManagerClient({
    socket,
    client,
    map: false,
    patienceMs: PATIENCE_MS,
    take: (message, bytes) => {
      if (message.t === 'reports') for (const report of message.reports) reports.set(report.key, report);
      else if (message.t === 'chunk') {
        const { key, stream, offset } = message;
        const at = followed.get(key);
        if (at) at[stream] = offset + bytes.length;
        chunks.push({ key, stream, offset, data: Buffer.from(bytes) });
      } else if (message.t === 'sizes') {
        const { key, files } = message;
        if (message.isFirst) unanswered.push(key);
        for (const file of files) sizes.push({ key, ...file });
      } else if (message.t === 'piece') {
        const { key, name, offset } = message;
        pieces.push({ key, name, offset, data: Buffer.from(bytes) });
      } else if (message.t === 'home') return void hearJob(message, bytes);
      wake();
    },
    onLost: () => {
      generation += 1;
      followed.clear();
      wake();
    },
  });
  /** A request that is not answered, because this process ends, is sent again to the next. */
  async function hearJob({ call, key, request }: Extract<ToClient, { t: 'home' }>, sent: Uint8Array): Promise<void> {
    const { result, bytes } = (await answerJob?.(key, request, sent)) ?? { result: CHIRP_ERROR.notAuthorized };
    await centralManager.say({ t: 'home-answer', call, result }, bytes).catch(() => undefined);
  }

  const outcomes = async (question: Parameters<typeof centralManager.ask>[0]): Promise<Outcomes> =>
    new Map((await centralManager.ask(question, 'done')).outcomes);

  async function prepare(specs: readonly AttemptSpec[], commit: boolean): Promise<Outcomes> {
    const { requests: readable, refused } = checked(specs.map(requestOf));
    const all: Outcomes[] = [refused];
    for (const requests of inFrames(readable)) all.push(await outcomes({ t: 'prepare', requests, commit }));
    return new Map(all.flatMap((some) => [...some]));
  }

  async function follow(wanted: PollRequest['follow']): Promise<void> {
    const keys = new Set(wanted.map(({ key }) => key));
    for (const key of followed.keys()) if (!keys.has(key)) followed.delete(key);
    for (const { key, stdout, stderr, files } of wanted) {
      const at = followed.get(key);
      if (!at || at.stdout < stdout || at.stderr < stderr || files?.afresh) {
        followed.set(key, { stdout, stderr });
        await centralManager.say({ t: 'follow', key, stdout, stderr, ...(files && { files: files.patterns }) });
      }
      if (files && files.wanted.length > 0) await centralManager.say({ t: 'want', key, files: files.wanted });
    }
  }

  function forgetNews(): void {
    chunks = [];
    sizes = [];
    pieces = [];
    unanswered = [];
  }

  /** Waits until there is news, or the time is over. */
  function news(waitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, waitMs);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  return {
    name,
    describe: async (): Promise<SiteFacts> => {
      await centralManager.open();
      const facts = { host: hostname(), os: 'LINUX', arch: '', user: '', home: '', freeDiskKb: undefined };
      return { ...facts, batch: 'pool', batchVersion: undefined };
    },
    prepare: (specs) => prepare(specs, false),
    submit: (specs) => prepare(specs, true),
    commit: (keys) => outcomes({ t: 'commit', keys }),
    async poll({ cursor, follow: wanted, waitMs = 0 }): Promise<PollAnswer> {
      await centralManager.open();
      const [of, answer] = (cursor ?? '').split('.');
      if (of !== String(generation)) {
        const before = generation;
        reports = new Map();
        kept = new Map();
        forgetNews();
        followed.clear();
        const all = await centralManager.ask({ t: 'all' }, 'reports');
        return { cursor: `${before}.${answers}`, complete: true, reports: all.reports, chunks: [] };
      }
      if (answer !== String(answers)) {
        // The last answer was not recorded: its reports are repeated.
        reports = new Map([...kept, ...reports]);
        forgetNews();
        followed.clear();
      }
      await follow(wanted);
      const none = reports.size + chunks.length + sizes.length + pieces.length + unanswered.length === 0;
      if (none && waitMs > 0) await news(waitMs);
      // Ends of short jobs arrive in a stream; processing many at once costs as little as processing a few.
      if (waitMs > 0) await sleep(Math.max(0, answeredAt + GATHER_MS - performance.now()));
      if (of !== String(generation))
        throw new GryphusError('site-unreachable', "The connection to the pool's central manager was lost.");
      const fresh = { reports: [...reports.values()], chunks, sizes, pieces, unanswered };
      kept = reports;
      reports = new Map();
      forgetNews();
      answers += 1;
      answeredAt = performance.now();
      return { cursor: `${generation}.${answers}`, complete: false, ...fresh };
    },
    cancel: (keys, options) =>
      outcomes({ t: 'cancel', keys, how: options?.onlyIfNotStarted === true ? 'if-not-started' : 'remove' }),
    async fetch(requests: readonly FetchRequest[]): Promise<ReadonlyMap<AttemptKey, FetchOutcome>> {
      const fetched = await Promise.all(
        requests.map(
          async (request) => [request.key, await centralManager.ask({ t: 'fetch', request }, 'fetched')] as const,
        ),
      );
      return new Map(fetched.map(([key, { outcome }]) => [key, outcome]));
    },
    async delegate(proxy, sign): Promise<void> {
      await delegated.take(proxy, sign);
    },
    forget: (keys) => outcomes({ t: 'forget', keys }),
    capacity: async (): Promise<Capacity> => (await centralManager.ask({ t: 'capacity' }, 'capacity')).capacity,
    answerJobs: (answer) => {
      answerJob = answer;
    },
    close: () => centralManager.close(),
  };
}

/**
 * Takes out the requests that the central manager could not read. It ends a connection over such a message, and no
 * other job of this client would start either.
 */
function checked(all: readonly AttemptRequest[]): { requests: AttemptRequest[]; refused: Outcomes } {
  const requests: AttemptRequest[] = [];
  const refused = new Map<AttemptKey, Outcome>();
  for (const request of all) {
    const { error } = attemptRequest.safeParse(request);
    if (!error) requests.push(request);
    else {
      const message = `The pool cannot take the job: ${faultsOf(error)}.`;
      refused.set(request.key, { ok: false, refusal: { kind: 'never', code: 'site-refused', message } });
    }
  }
  return { requests, refused };
}

/** Frames are limited in size, and a job may have thousands of inputs. */
const FRAME = 8 << 20;

function inFrames(requests: readonly AttemptRequest[]): AttemptRequest[][] {
  const frames: AttemptRequest[][] = [];
  let size = FRAME;
  for (const request of requests) {
    const length = roughLength(request);
    if (size + length > FRAME) {
      frames.push([]);
      size = 0;
    }
    frames.at(-1)?.push(request);
    size += length;
  }
  return frames;
}

/**
 * An upper estimate of the length of its JSON, in characters: serializing it just to measure it would cost as much as
 * sending it.
 */
function roughLength({ ad, spec }: AttemptRequest): number {
  let length = 4000;
  for (const name in ad) length += name.length + 2 * (ad[name]?.length ?? 0) + 8;
  if ('env' in spec) for (const name in spec.env) length += name.length + 2 * (spec.env[name]?.length ?? 0) + 8;
  for (const argument of spec.args) length += 2 * argument.length + 4;
  return length + 2000 * (spec.inputs?.length ?? 0);
}

function requestOf(spec: AttemptSpec): AttemptRequest {
  const ad: AttrTexts = spec.ad ?? {};
  const source = { get: (attribute: string) => ad[attribute] ?? undefined };
  return {
    key: spec.key,
    owner: readString(source, 'Owner') ?? '',
    ad,
    size: { ...sizeOf(spec.resources), ...requestedOthers(ad) },
    prio: readNumber(source, 'JobPrio') ?? 0,
    lease: Math.max(0, readNumber(source, 'JobLeaseDuration') ?? LEASE_SECONDS),
    spec: runSpecOf(spec, source),
    ...gangOf(source),
  };
}

/** What a parallel job, or one with +WantDedicated, asks of the dedicated scheduler. */
function gangOf(ad: { get(name: string): string | undefined }): Pick<AttemptRequest, 'gang'> {
  if (!isParallel(ad)) return readBoolean(ad, 'WantDedicated') === true ? { gang: { count: 1, procs: 1 } } : {};
  return {
    gang: {
      count: readNumber(ad, 'MaxHosts') ?? 1,
      procs: togetherWith(ad),
      ...(readBoolean(ad, 'WantParallelSchedulingGroups') === true ? { oneGroup: true } : {}),
      ...(readString(ad, 'ParallelShutdownPolicy')?.toUpperCase() === 'WAIT_FOR_ALL' ? { waitsForAll: true } : {}),
    },
  };
}

function runSpecOf(spec: AttemptSpec, ad: { get(name: string): string | undefined }): RunSpec {
  const { executable, args, env, proxy, stdin, inputs, joinStderr, container, core, cwd, shared, resources } = spec;
  const vacate = readNumber(ad, 'JobMaxVacateTime');
  const kill = readString(ad, 'KillSig');
  const remote = readBoolean(ad, 'WantRemoteIO') === true;
  const asksHome = remote || readBoolean(ad, 'WantIOProxy') === true || readBoolean(ad, 'WantDelayedUpdates') === true;
  return {
    executable,
    args,
    env,
    inputs,
    joinStderr,
    ...(stdin && { stdin }),
    ...(proxy === undefined ? {} : { proxy }),
    ...(core === undefined ? {} : { core }),
    ...(container && { container }),
    ...(cwd === undefined ? {} : { cwd }),
    ...(shared === undefined ? {} : { shared }),
    ...(resources.walltimeSeconds === undefined ? {} : { walltimeSeconds: resources.walltimeSeconds }),
    ...(vacate === undefined ? {} : { vacateSeconds: Math.max(0, vacate) }),
    ...(kill === undefined || !/^SIG[A-Z0-9]+$/.test(kill) ? {} : { killSignal: kill }),
    ...(asksHome ? { ioProxy: true } : {}),
    ...(remote ? { remoteIo: true } : {}),
  };
}
