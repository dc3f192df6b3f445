import { analyze, explain, Matchmaker } from '../../classad/api.ts';
import type { AttrTexts } from '../../job/attrs.ts';
import { engineAttributes, engineNamed } from '../../job/checkpoint-engines.ts';
import { inAd, readString } from '../../job/values.ts';
import { offerAd } from '../wire/ads.ts';
import { type Attempt, type Autocluster, jobOf } from './attempts.ts';
import { timeNeeded } from './autoclusters.ts';
import { NO_WORKERS, type WaitInPool } from '../wire/client-wire.ts';
import { freeNow, hasSpace, takesMore, type Worker } from './collector.ts';
import type { CentralManager } from './central-manager.ts';
import { whyGangWaits } from './gangs/why-waits.ts';
import { whySuspended } from './why-suspended.ts';
import { shortOf, slotsIn } from '../wire/slots.ts';
import type { Size } from '../wire/wire.ts';

/**
 * Why a job is waiting in the pool or suspended there: what prevents each group of workers from taking it, the largest group first, and
 * how many slots are missing.
 */
export function whyWaits(centralManager: CentralManager, job: string): WaitInPool {
  const attempts = [...centralManager.attempts()].filter(({ key }) => jobOf(key) === job);
  const suspended = whySuspended(centralManager, attempts);
  if (suspended) return suspended;
  const attempt = attempts.find(({ phase }) => phase === 'idle');
  const kind = attempt?.kind;
  if (!attempt || !kind) return { lines: [] };
  if (attempt.request.gang && [...centralManager.collector.all()].length > 0)
    return whyGangWaits(centralManager, attempt);
  const workers = [...centralManager.collector.all()];
  const { cpus, memoryMb } = kind.size;
  const local =
    centralManager.localTrouble === undefined
      ? []
      : [`This machine's worker cannot start: ${centralManager.localTrouble}.`];
  if (workers.length === 0) return { lines: [NO_WORKERS, ...local], wants: { cpus, memoryMb } };
  const reasons = new Map<string, number>();
  for (const worker of workers) {
    const reason = reasonOf(attempt, worker, centralManager);
    reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  }
  const lines = [...reasons].sort((a, b) => b[1] - a[1]).map(([reason, count]) => `${workersAs(count)}: ${reason}.`);
  const bars = barred(centralManager, attempt, kind);
  const matchmaker = new Matchmaker();
  const suited = workers.filter((worker) => {
    const machine = offerAd(worker.ad, worker.size);
    return takesMore(worker) && lasts(kind, worker) && matchmaker.matches(kind.ad, machine);
  });
  const slots = (sizes: readonly Size[]): number => sizes.reduce((sum, size) => sum + slotsIn(kind.size, size), 0);
  const spare = suited.map((worker) => centralManager.gangs.spareNow(worker));
  const free = slots(spare.map((one) => one.free));
  const isHeld = spare.some(({ heldFor }) => heldFor.length > 0);
  const all = slots(suited.map((worker) => worker.size));
  return {
    lines: [
      ...bars,
      ...lines,
      ...local,
      ...(reasons.has(NOT_ACCEPTED) || reasons.has(NOT_TAKEN) ? clauses(kind, workers) : []),
      shortage(kind.queue.length, free, all, isHeld),
      ...(attempt.why === undefined ? [] : [`The last refusal: ${attempt.why}.`]),
    ],
    ...(all === 0 ? { wants: { cpus, memoryMb } } : {}),
  };
}

/** What keeps it from starting although there may be free slots, and what is being done for it. */
function barred(centralManager: CentralManager, { request }: Attempt, kind: Autocluster): string[] {
  const { sharing, priorities, collector } = centralManager;
  const lines: string[] = [];
  const bar = sharing.gate().bars(kind, true);
  if (bar?.by === 'limit')
    lines.push(`It waits: concurrency limit ${bar.name} is used up (${bar.used} of ${bar.maximum}).`);
  if (bar?.by === 'quota')
    lines.push(`It waits: accounting group ${bar.name} uses its quota (${bar.used} of ${bar.maximum} cores).`);
  const group = readString(inAd(request.ad), 'AcctGroup');
  if (group !== undefined && !kind.owner.toLowerCase().startsWith(`${group.toLowerCase()}.`))
    lines.push(`Accounting group ${group} is not in pool.group_names: the job counts for ${kind.owner}.`);
  const promised = [...collector.all()].flatMap(({ claims }) => [...claims.values()]);
  const coming = promised.filter((claim) => claim.promised === kind);
  if (coming.length > 0)
    lines.push(
      `${slotsAs(coming.length)} will be free for it: preempted, ${coming.map((one) => `${one.kind.owner}'s job`).join(', ')}.`,
    );
  const better = priorities.order(new Set([kind.owner, ...promised.map((claim) => claim.kind.owner)]));
  const after = promised.filter((claim) => better.indexOf(claim.kind.owner) > better.indexOf(kind.owner));
  if (coming.length === 0 && bar === undefined && after.length > 0)
    lines.push(
      sharing.rules.preemption.requirements === undefined
        ? `${slotsAs(after.length)} run jobs of owners of worse priority; pool.preemption_requirements lets none be preempted.`
        : `${slotsAs(after.length)} run jobs of owners of worse priority, which may not be preempted yet.`,
    );
  return lines;
}

const NOT_ACCEPTED = "not accepted by the job's requirements";
const NOT_TAKEN = 'its START policy rejects the job';

/**
 * Which Requirements clauses rule out which workers, considering their full size: resources in use are reported
 * separately.
 */
function clauses(kind: Autocluster, workers: readonly Worker[]): string[] {
  const machines = workers.map((worker) => offerAd(worker.ad, worker.size));
  return explain(analyze(kind.ad, machines), 'worker').trimEnd().split('\n');
}

function shortage(jobs: number, free: number, all: number, isHeld: boolean): string {
  const wait = jobs === 1 ? 'No other job like it is waiting; for it' : `${jobs} jobs like it are waiting; for them`;
  const busy = all - free;
  const used = busy > 0 ? ` and ${busy} that ${busy === 1 ? 'is' : 'are'} in use${isHeld ? ' or held' : ''}` : '';
  const short = Math.max(0, jobs - free);
  return `${wait} the pool has ${slotsAs(free)} free${used}: ${short === 0 ? 'enough' : `${slotsAs(short)} short`}.`;
}

function slotsAs(count: number): string {
  return count === 1 ? '1 slot' : `${count} slots`;
}

function workersAs(count: number): string {
  return count === 1 ? '1 worker' : `${count} workers`;
}

/** Why the worker cannot run the job's container, if it cannot. */
function runtimeMissing({ texts }: Autocluster, worker: Worker): string | undefined {
  const wants = (name: string) => texts[name]?.toLowerCase() === 'true';
  const has = (name: string) => worker.texts[name] === 'true';
  const docker = wants('WantDocker');
  if (!docker && !wants('WantContainer')) return undefined;
  const source = inAd(worker.texts);
  const message = readString(source, 'ContainerOfflineReason');
  const because = message === undefined ? '' : ` (${message.replace(/\.$/, '')})`;
  if (!has('HasContainer')) return `no container runtime there${because}`;
  if (docker && !has('HasDocker')) return `neither docker nor podman there${because}`;
  if (wants('WantSIF') && !has('HasSIF')) return `no apptainer there, which .sif images need${because}`;
  if (wants('WantSandboxImage') && !has('HasSandboxImage'))
    return `neither apptainer nor podman there, which images in files need${because}`;
  return undefined;
}

/** Why the worker cannot move the job, or answer its calls about files at home, if its requirements want that. */
function helperMissing({ texts }: Autocluster, worker: Worker): string | undefined {
  const source = inAd(worker.texts);
  const wants = (name: string) => texts['Requirements']?.includes(`TARGET.${name}`) === true;
  const lacks = (name: string, what: string): string | undefined => {
    if (!wants(name) || worker.texts[name] === 'true') return undefined;
    const message = readString(source, `${name}Reason`);
    return `${what} there${message === undefined ? '' : ` (${message.replace(/\.$/, '')})`}`;
  };
  return (
    lacks('HasRemoteIO', 'no remote I/O') ?? lacks('HasCheckpoint', 'no checkpoints') ?? engineMissing(texts, worker)
  );
}

/** Why the worker lacks the checkpoint engine that the job's requirements name. */
function engineMissing(job: AttrTexts, worker: Worker): string | undefined {
  const word = /stringListIMember\("(\w+)", ?TARGET\.CheckpointEngines\)/.exec(job['Requirements'] ?? '')?.[1];
  const name = word === undefined ? undefined : engineNamed(word);
  const source = inAd(worker.texts);
  if (name === undefined || readString(source, 'CheckpointEngines')?.split(',').includes(name) === true)
    return undefined;
  const message = readString(source, engineAttributes(name).reason);
  return `no checkpoints by ${name} there${message === undefined ? '' : ` (${message.replace(/\.$/, '')})`}`;
}

function timeLeft({ texts }: Worker): number {
  return Number(texts['TimeToLive'] ?? Number.POSITIVE_INFINITY);
}

function lasts(kind: Autocluster, worker: Worker): boolean {
  return timeLeft(worker) > timeNeeded(kind);
}

function reasonOf({ kind }: Attempt, worker: Worker, { collector, gangs }: CentralManager): string {
  if (!kind) return 'not known';
  if (!worker.connected) return 'disconnected; waiting for what runs there';
  if (worker.draining) return 'draining';
  if (worker.silent) return 'silent for a while: it gets no more jobs until it reports again';
  if (!hasSpace(worker)) return 'its disk is full';
  const owner = readString({ get: (name) => worker.texts[name] ?? undefined }, 'GryphusOwner');
  if (owner !== undefined) return owner;
  const short = shortOf(kind.size, freeNow(worker));
  const never = shortOf(kind.size, worker.size, 'in all');
  if (never !== undefined) return `too small: the job requests ${never}`;
  const contained = runtimeMissing(kind, worker);
  if (contained !== undefined) return contained;
  const helped = helperMissing(kind, worker);
  if (helped !== undefined) return helped;
  const matchmaker = new Matchmaker();
  // Considering its full size: resources in use are reported separately.
  const machine = offerAd(worker.ad, worker.size);
  if (!matchmaker.accepts(kind.ad, machine)) return NOT_ACCEPTED;
  if (!matchmaker.accepts(machine, kind.ad)) return NOT_TAKEN;
  if (!lasts(kind, worker))
    return `only ${timeLeft(worker)} s of its allocation are left${kind.seen > 0 ? `, and such jobs take ${Math.ceil(kind.mean)} s` : ''}`;
  if (short !== undefined) return `busy with other jobs: the job requests ${short}`;
  const { free, heldFor } = gangs.spareNow(worker);
  if (shortOf(kind.size, free) !== undefined)
    return `what is free there is held for ${heldFor.join(', ')}, and the job is not known to end before (batch_runtime)`;
  if (collector.refuses(worker, kind)) return 'it refused the job a moment ago';
  return 'free: the job is about to start';
}
