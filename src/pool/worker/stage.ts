import { asError } from '../../errors.ts';
import type { AttrTexts } from '../../job/attrs.ts';
import { type AttemptKey, parseAttemptKey } from '../../job/ids.ts';
import type { Accounts } from './accounts.ts';
import { writeAds } from './ad-files.ts';
import type { ChirpProxies } from './chirp/chirp-proxies.ts';
import type { CheckpointEngines } from './engines/engines.ts';
import type { NativeHelper } from '../host/remote-io-helper.ts';
import { helped, placeRemoteIo } from './remote-io/remote-command.ts';
import type { PlacedJob } from './job-script.ts';
import type { RemoteStarts } from './launchers/remote-starts.ts';
import type { ReusedSandbox } from './reused-sandbox.ts';
import type { Run } from './run.ts';
import { type BlobCache, foreignNames, furnish, LARGE, type Pull, placeLarge } from './sandbox.ts';
import type { WorkerStagingLinks } from './staging-links.ts';
import { TaskRunnerSlot } from './task-runner-slot.ts';
import type { Blob } from '../../site/contract.ts';
import { lateInputs } from '../wire/direct-wire.ts';
import { blobsOf } from '../wire/run-blobs.ts';
import type { InputSource, PartnerInputs } from './partner-inputs.ts';

/** How a worker obtains what jobs need. */
export interface Means {
  /** Whether the worker can read files of the agent's machine directly. */
  readonly sharesHome: boolean;
  readonly pull: (key: AttemptKey) => Pull;
  /** From where inputs of a partner's job come that are not at our gateway. */
  readonly partnerInputs?: Pick<PartnerInputs, 'open'> | undefined;
  /** The connections for large inputs. */
  readonly staging?: Pick<WorkerStagingLinks, 'input' | 'endInputs'> | undefined;
  /** Through which jobs send requests to their home. */
  readonly chirp?: ChirpProxies | undefined;
  /** Through which nodes of parallel jobs start commands at others. */
  readonly remote?: RemoteStarts | undefined;
  /** The path of a job's proxy file. */
  readonly proxyOf: (name: string, key: AttemptKey) => string | Promise<string>;
}

/**
 * Brings what a run needs to its worker; `undefined` if nothing has to be waited for: everything is here, or only small
 * local files were copied.
 */
export function stage(run: Run, cache: BlobCache, means: Means): Promise<unknown> | undefined {
  try {
    return bring(run, cache, means);
  } catch (thrown) {
    return Promise.reject(asError(thrown));
  }
}

function bring(
  run: Run,
  cache: BlobCache,
  { sharesHome, pull, staging, proxyOf, chirp, remote, partnerInputs }: Means,
): Promise<unknown> | undefined {
  const { dir, record } = run;
  const { spec } = record;
  const reused = reusedBy(run);
  const blobs = spec.shared ? [] : blobsOf(spec);
  const coming: Promise<unknown>[] = [];
  const fromHere = (blob: Blob) => {
    if (!sharesHome) return cache.pull(blob, pull(run.key), (from) => staging?.input(run.key, blob, from));
    if (blob.bytes > LARGE) return cache.copyLarge(blob);
    cache.copy(blob);
    return undefined;
  };
  const late = partnerInputs ? lateOf(run) : NONE;
  const lacking: Blob[] = [];
  for (const blob of blobs) {
    // Small files are read when they are placed.
    if (reused && sharesHome) break;
    if (cache.here(blob)) continue;
    if (late.has(blob.sha256)) lacking.push(blob);
    else {
      const one = fromHere(blob);
      if (one) coming.push(one);
    }
  }
  if (lacking.length > 0 && partnerInputs) coming.push(bringLate(run, lacking, cache, partnerInputs, fromHere));
  const proxy = spec.proxy === undefined ? undefined : proxyOf(spec.proxy, run.key);
  if (typeof proxy === 'object') coming.push(proxy.then((path) => (run.proxy = path)));
  else run.proxy = proxy;
  if (spec.ioProxy && chirp) coming.push(chirp.listen());
  if (isNode(run) && remote) coming.push(remote.listen());
  if (coming.length === 0 && blobs.every(({ bytes }) => bytes <= LARGE)) return undefined;
  return Promise.all(coming).then(() => {
    staging?.endInputs(run.key);
    return run.aborted ? undefined : placeLarge(dir, spec, cache);
  });
}

const NONE: ReadonlySet<string> = new Set();

function lateOf({ received }: Run): ReadonlySet<string> {
  return received ? lateInputs(received.kind.texts, received.start.ad) : NONE;
}

/** Inputs that are not at our gateway: from the partner's, or, when they have come to ours instead, by `fromHere` as all others. */
async function bringLate(
  run: Run,
  blobs: readonly Blob[],
  cache: BlobCache,
  partnerInputs: Pick<PartnerInputs, 'open'>,
  fromHere: (blob: Blob) => unknown,
): Promise<void> {
  let source: InputSource | undefined;
  try {
    const from = (source = await partnerInputs.open(run));
    await Promise.all(blobs.map((blob) => (from ? cache.pull(blob, from.pull) : fromHere(blob))));
  } catch (thrown) {
    // It was cancelled meanwhile, and will not be started.
    if (!run.aborted) throw thrown;
  } finally {
    source?.close();
  }
}

/** Puts the inputs and ads into the run's sandbox, and records which files are there before it starts. */
export function equip(
  run: Run,
  cache: BlobCache,
  {
    machine,
    accounts,
    chirp,
    remote,
    checkpoints,
    remoteIo,
  }: Pick<Means, 'chirp' | 'remote'> & {
    readonly checkpoints?: CheckpointEngines | undefined;
    readonly remoteIo?: NativeHelper | undefined;
    readonly machine: { readonly ad: AttrTexts };
    readonly accounts?: Accounts | undefined;
  },
): PlacedJob {
  const { dir, record, received, proxy } = run;
  const placed = furnish(dir, record.spec, cache, reusedBy(run));
  if (received) writeAds(dir.work, received.start, received.kind, machine.ad);
  const asksHome = record.spec.ioProxy === true && chirp !== undefined;
  if (asksHome) chirp.open(run);
  run.variables = isNode(run) ? remote?.open(run) : undefined;
  run.names = run.sandboxed ? foreignNames(dir.work, record.spec) : [];
  placeRemoteIo(run, remoteIo);
  const slot = received?.start.slot;
  const all = {
    ...placed,
    proxy,
    ads: received !== undefined,
    slot,
    chirp: asksHome,
    variables: run.variables,
    gpus: record.gpus,
  };
  return helped(run, accounts?.ready(run, all) ?? all, { checkpoints, remoteIo });
}

/** Whether it is a node of a parallel job. */
function isNode({ key }: Run): boolean {
  return parseAttemptKey(key)?.node !== undefined;
}

function reusedBy({ dir }: Run): ReusedSandbox | undefined {
  return dir instanceof TaskRunnerSlot ? dir.sandbox : undefined;
}

/** The proxies that runs are using, each with the key of an attempt that uses it. */
export function proxiesOf(runs: Iterable<Run>): Map<string, AttemptKey> {
  const live = [...runs].filter(({ phase }) => phase !== 'ended');
  return new Map(live.flatMap(({ key, record: { spec } }) => (spec.proxy === undefined ? [] : [[spec.proxy, key]])));
}

/** When the disk is full: deletes cached inputs that no run uses. */
export function dropUnused(runs: Iterable<Run>, cache: BlobCache): void {
  const live = [...runs].filter(({ phase }) => phase !== 'ended');
  cache.clear(new Set(live.flatMap(({ record }) => blobsOf(record.spec).map(({ sha256 }) => sha256))));
}

/** A job that an earlier worker started finds its proxy again, at another port. */
export function proxyAgain(run: Run, chirp: ChirpProxies | undefined): void {
  if (!chirp || run.phase === 'ended' || run.record.spec.ioProxy !== true) return;
  chirp
    .listen()
    .then(() => {
      if (run.phase !== 'ended') chirp.open(run);
    })
    // Its sandbox can be full. The job goes on without a proxy, and so does the worker.
    .catch(() => undefined);
}
