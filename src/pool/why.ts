import { Matchmaker } from '../classad/api.ts';
import { readString } from '../job/values.ts';
import { offerAd } from './ads.ts';
import { type Attempt, type JobKind, jobOf } from './attempts.ts';
import { NO_WORKERS } from './client-wire.ts';
import type { Worker } from './collector.ts';
import type { Desk } from './desk.ts';
import { lastsFor } from './negotiator.ts';
import { shortOf } from './slots.ts';

/** Why a job waits in the pool: one line for each group of workers that does not take it, the largest first. */
export function whyWaits(desk: Desk, job: string): string[] {
  const attempt = [...desk.attempts()].find(({ key, phase }) => jobOf(key) === job && phase === 'idle');
  const kind = attempt?.kind;
  if (!attempt || !kind) return [];
  const workers = [...desk.collector.all()];
  if (workers.length === 0) return [NO_WORKERS];
  const reasons = new Map<string, number>();
  for (const worker of workers) {
    const reason = reasonOf(attempt, worker);
    reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  }
  const lines = [...reasons].sort((a, b) => b[1] - a[1]).map(([reason, count]) => `${workersAs(count)}: ${reason}.`);
  return attempt.why === undefined ? lines : [...lines, `The last refusal: ${attempt.why}.`];
}

function workersAs(count: number): string {
  return count === 1 ? '1 worker' : `${count} workers`;
}

/** A job in a container, and a worker that cannot start one. */
function runtimeMissing({ texts }: JobKind, worker: Worker): string | undefined {
  const wants = (name: string) => texts[name]?.toLowerCase() === 'true';
  const has = (name: string) => worker.texts[name] === 'true';
  const docker = wants('WantDocker');
  if (!docker && !wants('WantContainer')) return undefined;
  const source = { get: (name: string) => worker.texts[name] ?? undefined };
  const words = readString(source, 'ContainerOfflineReason');
  const because = words === undefined ? '' : ` (${words.replace(/\.$/, '')})`;
  if (!has('HasContainer')) return `no container runtime there${because}`;
  if (docker && !has('HasDocker')) return `neither docker nor podman there${because}`;
  if (wants('WantSIF') && !has('HasSIF')) return `no apptainer there, which .sif images need${because}`;
  if (wants('WantSandboxImage') && !has('HasSandboxImage'))
    return `neither apptainer nor podman there, which images in files need${because}`;
  return undefined;
}

function reasonOf({ kind }: Attempt, worker: Worker): string {
  if (!kind) return 'not known';
  if (!worker.connected) return 'away, what runs there is waited for';
  if (worker.draining) return 'draining';
  const short = shortOf(kind.size, worker.free);
  const never = shortOf(kind.size, worker.size);
  if (never !== undefined) return `too small: the job asks for ${never.replace(' free', '')}`;
  const contained = runtimeMissing(kind, worker);
  if (contained !== undefined) return contained;
  const matchmaker = new Matchmaker();
  // By all that it has: what others use now is another reason.
  const machine = offerAd(worker.ad, worker.size);
  if (!matchmaker.accepts(kind.ad, machine)) return "not accepted by the job's requirements";
  if (!matchmaker.accepts(machine, kind.ad)) return 'its START policy does not take the job';
  const expected = kind.seen > 0 ? kind.mean : undefined;
  const left = Number(worker.texts['TimeToLive'] ?? Number.POSITIVE_INFINITY);
  if (!lastsFor({ expected }, { timeToLive: left })) return `only ${left} s of its allocation are left`;
  if (short !== undefined) return `busy with other jobs (${short})`;
  if (worker.refused.has(kind)) return 'it refused the job a moment ago';
  return 'free: the job is about to start';
}
