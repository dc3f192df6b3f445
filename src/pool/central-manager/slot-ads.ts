import type { AttrTexts } from '../../job/attrs.ts';
import { quoted } from '../../job/values.ts';
import { sizeTexts } from '../wire/ads.ts';
import { freeNow, slotName, type Worker } from './collector.ts';
import type { CentralManager } from './central-manager.ts';

/** The pool's slots as HTCondor shows them: each worker's partitionable slot, followed by its dynamic slots (claims). */
export function slotAds(centralManager: CentralManager): AttrTexts[] {
  return [...centralManager.collector.all()].flatMap((worker) => slotsOf(centralManager, worker));
}

function slotsOf(centralManager: CentralManager, worker: Worker): AttrTexts[] {
  return [partitionable(centralManager, worker), ...dynamic(centralManager, worker)];
}

/** What a look at the machines needs of the same: of thousands that are idle, whole ads are most of the price. */
export function* looksOf(centralManager: CentralManager): Generator<AttrTexts> {
  for (const worker of centralManager.collector.all()) {
    const { texts, claims, connected, silent, draining, size } = worker;
    const isPlain = claims.size === 0 && connected && !silent && !draining && texts['State'] == null;
    if (!isPlain) yield* slotsOf(centralManager, worker);
    else
      yield {
        Machine: texts['Machine'] ?? null,
        GryphusSite: texts['GryphusSite'] ?? null,
        PartitionableSlot: texts['PartitionableSlot'] ?? null,
        TotalCpus: texts['TotalCpus'] ?? String(size.cpus),
      };
  }
}

function partitionable(centralManager: CentralManager, worker: Worker): AttrTexts {
  const away = !worker.connected || worker.silent;
  const state = worker.draining ? 'Drained' : away ? 'Unknown' : undefined;
  return {
    ...worker.texts,
    ...sizeTexts(worker.texts, freeNow(worker)),
    NumDynamicSlots: String(worker.claims.size),
    ...heldOf(centralManager, worker),
    // A worker that its owner or its policy controls says itself which state it is in.
    ...(state === undefined && worker.texts['State'] != null
      ? {}
      : {
          State: quoted(state ?? 'Unclaimed'),
          Activity: quoted(worker.draining ? 'Retiring' : 'Idle'),
          EnteredCurrentState: seconds(worker.since),
          EnteredCurrentActivity: seconds(worker.since),
        }),
  };
}

/** What is held of a worker for parallel jobs that wait, and for reservations. */
function heldOf({ gangs }: CentralManager, { instance }: Worker): AttrTexts {
  const holds = gangs.holds.filter(({ machine }) => machine === instance);
  if (holds.length === 0) return {};
  const names = new Set(holds.map((hold) => hold.for));
  return { GryphusHeldSlots: String(holds.length), GryphusHeldFor: quoted([...names].join(', ')) };
}

function dynamic(centralManager: CentralManager, worker: Worker): AttrTexts[] {
  return [...worker.claims.values()].map((claim) => {
    const attempt = claim.key === undefined ? undefined : centralManager.get(claim.key);
    const since = attempt?.startedAt ?? claim.since / 1000;
    const busy = attempt?.phase === 'running' ? 'Busy' : attempt?.phase === 'suspended' ? 'Suspended' : 'Idle';
    const slot = attempt?.phase === 'running' || attempt?.phase === 'suspended' ? attempt.slot : undefined;
    return {
      ...worker.texts,
      ...sizeTexts(worker.texts, claim.size),
      Name: quoted(slotName(worker, claim.id) ?? ''),
      SlotType: quoted('Dynamic'),
      PartitionableSlot: 'false',
      DynamicSlot: 'true',
      State: quoted(worker.connected ? (slot?.state ?? 'Claimed') : 'Unknown'),
      Activity: quoted(slot === undefined || slot.activity === 'Busy' ? busy : slot.activity),
      EnteredCurrentState: slot ? String(Math.floor(slot.enteredState)) : seconds(claim.since),
      EnteredCurrentActivity: String(Math.floor(slot?.enteredActivity ?? since)),
      ClaimId: quoted(claim.id),
      ...(claim.dedicated ? { Scheduler: quoted('DedicatedScheduler@pool') } : {}),
      RemoteOwner: quoted(claim.kind.owner),
      RemoteUser: quoted(claim.kind.owner),
      ...(attempt && { JobId: quoted(attempt.key.split('.').slice(1, 3).join('.')), GryphusKey: quoted(attempt.key) }),
    };
  });
}

function seconds(ms: number): string {
  return String(Math.floor(ms / 1000));
}
