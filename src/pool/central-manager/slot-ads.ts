import type { AttrTexts } from '../../job/attrs.ts';
import { quoted } from '../../job/values.ts';
import { sizeTexts } from '../wire/ads.ts';
import { freeNow, slotName, type Worker } from './collector.ts';
import type { CentralManager } from './central-manager.ts';

/**
 * The pool's slots as HTCondor shows them: each worker's partitionable slot, followed by its dynamic slots (claims). `only`: these
 * attributes of them, of which thousands of machines are sent at a hundredth of the price.
 */
export function slotAds(centralManager: CentralManager, only?: readonly string[]): AttrTexts[] {
  return [...centralManager.collector.all()].flatMap((worker) => {
    const shown = only === undefined ? worker : { ...worker, texts: some(worker.texts, only) };
    const ads = [partitionable(centralManager, shown), ...dynamic(centralManager, shown)];
    return only === undefined ? ads : ads.map((ad) => some(ad, only));
  });
}

function some(texts: AttrTexts, only: readonly string[]): AttrTexts {
  const picked: Record<string, string | null> = {};
  for (const name of only) {
    const value = texts[name];
    if (value !== undefined) picked[name] = value;
  }
  return picked;
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
