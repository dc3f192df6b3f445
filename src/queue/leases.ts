import type { Lease } from './api.ts';
import type { QueueContext } from './context.ts';

/**
 * Returns a new epoch, or `undefined` while another process holds the lease. Epochs are never reused, whoever held the
 * lease and however it ended.
 */
export async function acquireLease(
  context: QueueContext,
  name: string,
  ttlMs: number,
  { holder = String(process.pid), force = false }: { readonly holder?: string; readonly force?: boolean } = {},
): Promise<Lease | undefined> {
  const epoch = await context.db.script('lease', ['acquire', name, context.now(), ttlMs, holder, force ? 1 : 0]);
  return epoch === null ? undefined : { name, epoch: Number(epoch) };
}

export async function renewLease(context: QueueContext, lease: Lease, ttlMs: number): Promise<boolean> {
  return (await context.db.script('lease', ['renew', lease.name, context.now(), ttlMs, lease.epoch])) === 1;
}

export async function releaseLease(context: QueueContext, lease: Lease): Promise<void> {
  await context.db.script('lease', ['release', lease.name, context.now(), 0, lease.epoch]);
}

export async function leaseMarks(
  context: QueueContext,
  names: readonly string[],
): Promise<readonly (string | undefined)[]> {
  if (names.length === 0) return [];
  const marks = await context.db.run((redis) => redis.hmget(`${context.db.prefix}leases`, ...names));
  return marks.map((mark) => mark ?? undefined);
}
