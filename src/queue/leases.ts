import type { Lease } from './api.ts';
import type { Room } from './room.ts';

/** A new epoch, or `undefined` while another holds it. An epoch never comes again, whoever held it and however it ended. */
export async function acquireLease(
  room: Room,
  name: string,
  ttlMs: number,
  { holder = String(process.pid), force = false }: { readonly holder?: string; readonly force?: boolean } = {},
): Promise<Lease | undefined> {
  const epoch = await room.db.script('lease', ['acquire', name, room.now(), ttlMs, holder, force ? 1 : 0]);
  return epoch === null ? undefined : { name, epoch: Number(epoch) };
}

export async function renewLease(room: Room, lease: Lease, ttlMs: number): Promise<boolean> {
  return (await room.db.script('lease', ['renew', lease.name, room.now(), ttlMs, lease.epoch])) === 1;
}

export async function releaseLease(room: Room, lease: Lease): Promise<void> {
  await room.db.script('lease', ['release', lease.name, room.now(), 0, lease.epoch]);
}

export async function leaseMark(room: Room, name: string): Promise<string | undefined> {
  return (await room.db.run((redis) => redis.hget(`${room.db.prefix}leases`, name))) ?? undefined;
}
