import type { AttrTexts } from '../job/attrs.ts';
import { quoted } from '../job/values.ts';
import type { CandidateStep, Change } from '../queue/api.ts';
import type { Refusal } from '../site/contract.ts';
import type { GryphusError } from '../errors.ts';
import { commitCandidateSteps, commitChanges, type Sent, type SiteContext } from './context.ts';
import { transferTimes } from './transfer-times.ts';
import { holdByError } from '../job/hold.ts';
import { holdByRefusal } from './refusal-hold.ts';

/** Collects the outcomes for what was sent to a site and records them all at once: steps of jobs, and of candidates. */
export class Book {
  readonly #ctx: SiteContext;
  readonly #changes: Change[] = [];
  readonly #steps: CandidateStep[] = [];

  constructor(ctx: SiteContext) {
    this.#ctx = ctx;
  }

  /** Number of state changes, without updates of jobs that only wait. */
  get done(): number {
    return [...this.#changes, ...this.#steps].filter(({ event }) => event !== undefined).length;
  }

  step(sent: Sent, event: 'prepared' | 'committed' | 'lost', set?: AttrTexts): void {
    if (sent.candidate) this.#steps.push({ ...ofCandidate(sent.candidate), event });
    else this.#changes.push({ ...ofJob(sent), event, ...(set === undefined ? {} : { set }) });
  }

  /** It can never be sent, for example because an input file is missing. The job is held, also that of a candidate. */
  unfit(sent: Sent, error: GryphusError): void {
    const set = holdByError(error);
    if (sent.candidate) this.#changes.push({ id: sent.job.id, from: 'idle', event: 'refused', set });
    else this.#changes.push({ ...ofJob(sent), event: 'refused', set });
  }

  /** The site will never accept it; a candidate's job may still run elsewhere. */
  refused(sent: Sent, refusal: Refusal): void {
    const site = this.#ctx.record.name;
    if (sent.candidate)
      this.#steps.push({
        ...ofCandidate(sent.candidate),
        event: 'refused',
        message: `Site ${site}: ${refusal.message}`,
      });
    else this.#changes.push({ ...ofJob(sent), event: 'refused', set: holdByRefusal(site, refusal) });
  }

  /** Its input files are still being transferred. */
  arriving(sent: Sent, message: string, now: number): void {
    const said = quoted(`WAITING (${message})`);
    if (sent.candidate) return this.later(sent, message);
    if (sent.job.attrs.get('GridJobStatus') === said && sent.job.attrs.has('TransferringInput')) return;
    const { TransferInStarted = '' } = transferTimes('In', now, now);
    const set = { GridJobStatus: said, TransferringInput: 'true', TransferInStarted };
    this.#changes.push({ ...ofJob(sent), set });
  }

  /** The site cannot accept it now. */
  later(sent: Sent, message: string): void {
    const said = `WAITING (${message})`;
    if (sent.candidate) {
      if (sent.candidate.message !== said) this.#steps.push({ ...ofCandidate(sent.candidate), message: said });
    } else if (sent.job.attrs.get('GridJobStatus') !== quoted(said)) {
      this.#changes.push({ ...ofJob(sent), set: { GridJobStatus: quoted(said) } });
    }
  }

  /** Records everything, and wakes the work loops that continue from there. */
  async save(): Promise<void> {
    await commitChanges(this.#ctx, this.#changes);
    await commitCandidateSteps(this.#ctx, this.#steps);
    if (this.#changes.some(({ event }) => event === 'refused')) this.#ctx.wake('results');
    if (this.#steps.some(({ event }) => event === 'refused')) this.#ctx.wake('cancel');
  }
}

function ofJob({ job }: Sent): Pick<Change, 'id' | 'from' | 'attempt'> {
  return { id: job.id, from: job.state, attempt: job.attempt };
}

function ofCandidate({
  id,
  attempt,
}: NonNullable<Sent['candidate']>): Pick<NonNullable<Sent['candidate']>, 'id' | 'attempt'> {
  return { id, attempt };
}
