import { type ClassAd, Matchmaker } from '../classad/api.ts';
import type { AttrTexts } from '../job/attrs.ts';
import { adFrom, offerAd } from './ads.ts';
import type { Run } from './run.ts';
import { minus, plus, shortOf } from './slots.ts';
import { Starter } from './starter.ts';
import type { Size } from './wire.ts';

interface Claim {
  readonly size: Size;
  run: Run | undefined;
  starter: Starter | undefined;
}

export interface WorkerClaimsOptions {
  readonly size: Size;
  readonly ad: AttrTexts;
  readonly env: NodeJS.ProcessEnv;
  readonly script: string;
  readonly jobsDir: string;
}

/** The worker's one partitionable slot, what the desk has claimed of it, and the shells that run what is claimed. */
export class WorkerClaims {
  readonly #options: WorkerClaimsOptions;
  readonly #machine: ClassAd;
  readonly #claims = new Map<string, Claim>();
  readonly #spare: Starter[] = [];
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
    this.#claims.set(start.claim, { size: start.size, run: undefined, starter: undefined });
    this.#free = minus(this.#free, start.size);
    return undefined;
  }

  occupy(run: Run): void {
    const claim = this.#claims.get(run.record.claim);
    if (claim) claim.run = run;
  }

  /** What an earlier worker left under a claim. */
  adopt(run: Run): void {
    this.#claims.set(run.record.claim, { size: run.record.size, run, starter: undefined });
    this.#free = minus(this.#free, run.record.size);
  }

  starter(id: string): Starter {
    const claim = this.#claims.get(id);
    const kept = claim?.starter?.alive ? claim.starter : this.#spare.pop();
    const { script, jobsDir, env } = this.#options;
    const starter = kept?.alive ? kept : new Starter(script, jobsDir, env);
    if (claim) claim.starter = starter;
    return starter;
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
  }

  releaseIdle(): void {
    for (const id of this.#claims.keys()) this.release(id);
  }

  close(): void {
    for (const starter of this.#spare) starter.end();
    for (const { starter } of this.#claims.values()) starter?.end();
  }
}
