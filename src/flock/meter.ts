import type { Borrower } from './borrower.ts';
import type { Lender } from './lender.ts';
import type { PartnerState } from './partner.ts';

/** Counts what each side uses of the other. A job that is passed on counts with both: lent to one, borrowed from the other. */
export class Meter {
  #at = performance.now();

  /** What was used since the last call. */
  count(
    partners: ReadonlyMap<string, Pick<PartnerState, 'balance'>>,
    lender: Pick<Lender, 'jobs'>,
    borrower: Pick<Borrower, 'jobs'>,
  ): void {
    const at = performance.now();
    const seconds = (at - this.#at) / 1000;
    this.#at = at;
    const now = Date.now() / 1000;
    for (const { partner, startedAt, end, request } of lender.jobs)
      if (startedAt !== undefined && !end) partners.get(partner)?.balance.add(now, seconds * request.size.cpus, 0);
    for (const { job, startedAt, phase } of borrower.jobs)
      if (startedAt !== undefined && phase === 'committed')
        partners.get(job.partner)?.balance.add(now, 0, seconds * job.size.cpus);
  }
}
