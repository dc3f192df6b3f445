import { randomBytes } from 'node:crypto';
import { Attrs, type AttrTexts } from '../job/attrs.ts';
import { GryphusError } from '../errors.ts';
import { quoted } from '../job/values.ts';
import type { Lease, MaterializeResult, ProcInput, SubmitInput, QueuedCluster } from './api.ts';
import { ProcBatch } from './proc-batch.ts';
import { encodeJson, literal, plainString, readClusterAd } from './record.ts';
import type { QueueContext } from './context.ts';

/** Procs in one write. */
const CHUNK = 4000;
/** Staging not updated for this long belongs to a submit that died, milliseconds. */
const STAGING_MS = 15 * 60_000;

/**
 * Stages the procs in several writes, then makes all of them visible in one step. Each step is on disk when it is
 * answered.
 */
export async function submit(context: QueueContext, input: SubmitInput): Promise<QueuedCluster> {
  const shared = new Attrs(shareable(input.clusterAd));
  const token = randomBytes(12).toString('hex');
  const cluster = Number(await context.db.script('begin', [token, context.now(), context.now() - STAGING_MS]));
  try {
    input.onCluster?.(cluster);
    const batch = new ProcBatch(context, shared, input, 0);
    // The next procs are made while these are written.
    let staging = Promise.resolve();
    const next = async (): Promise<void> => {
      await staging;
      staging = stage(context, cluster, token, await batch.take());
      staging.catch(() => undefined);
    };
    for await (const proc of input.procs) {
      if (batch.size >= CHUNK) await next();
      batch.add(proc);
    }
    if (batch.size > 0) await next();
    await staging;
    if (batch.total === 0 && input.digest === undefined) {
      throw new GryphusError('bad-input', 'The submit file queues no jobs.', {
        suggestions: ['Add a queue statement that queues at least one.'],
      });
    }
    const published = await context.db.script('publish', [
      cluster,
      token,
      context.now(),
      encodeJson(shared.own),
      plainString(shared.get('Owner')),
      plainString(shared.get('JobBatchName')),
      batch.nextProc,
      Math.max(input.total ?? 0, batch.nextProc),
      input.digest ?? '',
      JSON.stringify(batch.ranges),
      input.dag?.manager ?? '',
      input.dag?.name ?? '',
      input.manager ?? '',
      input.site ?? '',
      literal(shared.get('JobUniverse')),
      literal(shared.get('DAGManJobId')),
    ]);
    if (published === 2) throw new GryphusError('conflict', `The DAG has submitted ${input.dag?.name} before.`);
    if (published !== 1) throw swept();
    return { cluster, procs: batch.total };
  } catch (thrown) {
    await context.db.script('drop', [cluster, token]).catch(() => undefined);
    throw thrown;
  }
}

/** Late materialization, in one step: of two concurrent calls, one is refused. */
export async function materialize(
  context: QueueContext,
  cluster: number,
  input: {
    readonly nextProc: number;
    readonly procs: Iterable<ProcInput>;
    readonly done: boolean;
    readonly lease?: Lease;
    readonly removedBecause?: string;
  },
): Promise<MaterializeResult> {
  const { prefix } = context.db;
  const ad = await context.db.run((redis) => redis.get(`${prefix}ad:${cluster}`));
  if (ad === null) return { ok: false, why: 'no-such-cluster' };
  const [manager, site] = await context.db.run((redis) => redis.hmget(`${prefix}c:${cluster}`, 'manager', 'site'));
  const shared = new Attrs(readClusterAd(ad, cluster));
  const batch = new ProcBatch(context, shared, { manager: manager ?? '', site: site ?? '' }, input.nextProc);
  const set: AttrTexts = input.removedBecause === undefined ? {} : { RemoveReason: quoted(input.removedBecause) };
  for (const proc of input.procs)
    batch.add(proc.state === 'removed' ? { ...proc, attrs: { ...proc.attrs, ...set } } : proc);
  const answer = String(
    await context.db.script('materialize', [
      cluster,
      context.now(),
      input.lease?.name ?? '',
      input.lease?.epoch ?? '',
      input.nextProc,
      batch.nextProc,
      input.done ? 1 : 0,
      JSON.stringify(batch.ranges),
      JSON.stringify(batch.removed),
      encodeJson(set),
      ...(await batch.take()),
    ]),
  );
  if (answer === 'ok') return { ok: true, nextProc: batch.nextProc };
  if (answer.startsWith('conflict|')) {
    return { ok: false, why: 'conflict', nextProc: Number(answer.slice('conflict|'.length)) };
  }
  return { ok: false, why: answer === 'stale-epoch' ? 'stale-epoch' : 'no-such-cluster' };
}

async function stage(
  context: QueueContext,
  cluster: number,
  token: string,
  write: readonly (string | number)[],
): Promise<void> {
  if ((await context.db.script('stage', [cluster, token, context.now(), ...write])) !== 1) throw swept();
}

function swept(): GryphusError {
  return new GryphusError(
    'conflict',
    'The submit took too long, and its staged files were removed; nothing was queued.',
    {
      suggestions: ['Submit again.'],
    },
  );
}

/** A cluster's ad has no parent whose attributes `null` could hide. */
function shareable(ad: AttrTexts): AttrTexts {
  return Object.fromEntries(Object.entries(ad).filter(([, text]) => text !== null));
}
