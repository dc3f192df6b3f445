import type { Borrower } from './borrower.ts';
import type { PartnerStatus } from './flock-state.ts';
import type { Lender } from './lender.ts';
import type { PartnerState } from './partner.ts';

/** What `gryphus flock show` says of a partner. */
export function partnerStatus(state: PartnerState, borrower: Borrower, lender: Lender): PartnerStatus {
  const now = Date.now() / 1000;
  const { agreement } = state.partner;
  const { name, link, balance, closed, lending, offers, agent, direct } = state;
  const { why: detour, left } = direct.rest;
  const there = [...borrower.jobs].filter(({ job }) => job.partner === name);
  const here = [...lender.jobs].filter((lent) => lent.partner === name && lent.phase !== 'gone');
  return {
    name,
    connected: link.up,
    ...(agent === undefined ? {} : { agent }),
    ...(link.up || link.trouble === '' ? {} : { trouble: link.trouble }),
    to: agreement.to,
    from: agreement.from,
    paused: agreement.paused,
    ...(closed ? { closed: { ...closed } } : {}),
    ...(lending ? { lending: { ...lending } } : {}),
    borrowed: borrower.cores(name),
    lent: lender.held(name),
    offered: offers.reduce((sum, { all }) => sum + all.cpus, 0),
    machines: offers.reduce((sum, { machines }) => sum + machines, 0),
    day: balance.over('day', now),
    month: balance.over('month', now),
    balance: agreement.balance,
    slack: agreement.slack,
    jobs: [
      ...there.map(({ job, phase, startedAt, suspended }) => ({
        key: job.key,
        user: job.user,
        where: 'there' as const,
        is: stateOf(phase, startedAt, suspended),
        cpus: job.size.cpus,
      })),
      ...here.map(({ request, phase, startedAt, suspended, end }) => ({
        key: request.key,
        user: request.owner,
        where: 'here' as const,
        is: stateOf(end ? 'ended' : phase, startedAt, suspended),
        cpus: request.size.cpus,
      })),
    ],
    // Whole minutes: what changes each second would be written each second.
    ...(detour === undefined ? {} : { detour: { message: detour, seconds: Math.ceil(left / 60) * 60 } }),
    refusals: state.refusals.map((one) => ({ ...one })),
  };
}

function stateOf(phase: string, startedAt: number | undefined, suspended: boolean | undefined): string {
  if (phase === 'ended' || startedAt === undefined) return phase;
  return suspended ? 'suspended' : 'running';
}
