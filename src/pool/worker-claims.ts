import { type ClassAd, Matchmaker } from '../classad/api.ts';
import type { AttrTexts } from '../job/attrs.ts';
import { adFrom, offerAd } from './ads.ts';
import { AttemptDir } from './attempt-dir.ts';
import type { AttemptPlace, AttemptRecord } from './attempt-place.ts';
import { isLight, Lane, type LaneOptions } from './lane.ts';
import type { Run } from './run.ts';
import { minus, plus, shortOf } from './slots.ts';
import { Starter } from './starter.ts';
import type { Size } from './wire.ts';

/** A lane that nobody uses ends after so long, milliseconds. */
const SPARE_MS = 10_000;

interface Claim {
  readonly size: Size;
  run: Run | undefined;
  starter: Starter | undefined;
  lane: Lane | undefined;
}

/** The texts of starter.sh and lane.sh. */
export interface Scripts {
  readonly starter: string;
  readonly lane: string;
}

export interface WorkerClaimsOptions {
  readonly size: Size;
  readonly ad: AttrTexts;
  readonly env: NodeJS.ProcessEnv;
  readonly scripts: Scripts;
  readonly jobsDir: string;
  readonly lanesDir: string;
}

/** The worker's one partitionable slot, what the desk has claimed of it, and the shells that run what is claimed. */
export class WorkerClaims {
  readonly #options: WorkerClaimsOptions;
  readonly #machine: ClassAd;
  readonly #claims = new Map<string, Claim>();
  readonly #spare: Starter[] = [];
  readonly #spareLanes = new Map<Lane, number>();
  #free: Size;

  constructor(options: WorkerClaimsOptions) {
    this.#options = options;
    this.#machine = adFrom(options.ad);
    this.#free = options.size;
  }

  /**
   * Why a job will not be taken: a match is a hint, and this side checks it again. Where it is taken and there is no such
   * claim yet, it is made.
   */
  admit(start: { readonly claim: string; readonly size: Size }, job: ClassAd | undefined): string | undefined {
    const held = this.#claims.get(start.claim);
    if (held?.run && held.run.phase !== 'ended') return 'the claim is busy';
    if (!job) return 'its kind is not known';
    if (held) {
      const short = shortOf(start.size, held.size);
      return short === undefined ? undefined : `the claim is smaller: ${short}`;
    }
    const short = shortOf(start.size, this.#free);
    if (short !== undefined) return `it asks for ${short}`;
    const matchmaker = new Matchmaker();
    const machine = offerAd(this.#machine, this.#free);
    if (!matchmaker.accepts(machine, job)) return "the machine's START policy does not take it";
    if (!matchmaker.accepts(job, machine)) return "the job's requirements do not take this machine";
    this.#claims.set(start.claim, { size: start.size, run: undefined, starter: undefined, lane: undefined });
    this.#free = minus(this.#free, start.size);
    return undefined;
  }

  occupy(run: Run): void {
    const claim = this.#claims.get(run.record.claim);
    if (claim) claim.run = run;
  }

  /** What an earlier worker left under a claim. */
  adopt(run: Run): void {
    this.#claims.set(run.record.claim, { size: run.record.size, run, starter: undefined, lane: undefined });
    this.#free = minus(this.#free, run.record.size);
  }

  starter(id: string): Starter {
    const claim = this.#claims.get(id);
    const kept = claim?.starter?.alive ? claim.starter : this.#spare.pop();
    const { scripts, jobsDir, env } = this.#options;
    const starter = kept?.alive ? kept : new Starter(scripts.starter, jobsDir, env);
    if (claim) claim.starter = starter;
    return starter;
  }

  /** Writes an attempt down, so that no other worker on this directory starts it again. Throws where the disk is full. */
  place(record: AttemptRecord, base: string | undefined): AttemptPlace {
    if (base !== undefined && isLight(record.spec)) return this.#lane(record.claim, base, record.spec).give(record);
    const dir = new AttemptDir(this.#options.jobsDir, record.key);
    try {
      dir.create(record);
      return dir;
    } catch (thrown) {
      dir.remove();
      throw thrown;
    }
  }

  /** The shell for tasks of a map under a claim. */
  #lane(id: string, base: string, spec: LaneOptions['spec']): Lane {
    const claim = this.#claims.get(id);
    const kept = claim?.lane;
    if (kept?.alive && kept.base === base && !kept.tired) return kept;
    kept?.end();
    const spare = [...this.#spareLanes.keys()].find((lane) => lane.alive && lane.base === base && !lane.tired);
    if (spare) this.#spareLanes.delete(spare);
    const { scripts, lanesDir, env } = this.#options;
    const lane = spare ?? new Lane({ script: scripts.lane, lanesDir, env, base, spec });
    if (claim) claim.lane = lane;
    return lane;
  }

  /** Lanes that nobody wanted for a while end. */
  endSpareLanes(): void {
    for (const [lane, since] of this.#spareLanes) {
      if (performance.now() - since < SPARE_MS) continue;
      this.#spareLanes.delete(lane);
      lane.end();
    }
  }

  /** What ran under its claim runs no more: the claim is free for the next. */
  leave(run: Run): void {
    const claim = this.#claims.get(run.record.claim);
    if (claim?.run === run) claim.run = undefined;
  }

  /** The desk gives it back; one under which something runs stays until the desk says so again. */
  release(id: string): void {
    const claim = this.#claims.get(id);
    if (!claim || claim.run) return;
    this.#claims.delete(id);
    this.#free = plus(this.#free, claim.size);
    if (claim.starter?.alive) this.#spare.push(claim.starter);
    if (claim.lane) this.#spareLanes.set(claim.lane, performance.now());
  }

  releaseIdle(): void {
    for (const id of this.#claims.keys()) this.release(id);
  }

  close(): void {
    for (const starter of this.#spare) starter.end();
    for (const lane of this.#spareLanes.keys()) lane.end();
    for (const { starter, lane } of this.#claims.values()) {
      starter?.end();
      lane?.end();
    }
  }
}
