import type { BorrowedJob } from './borrowed-journal.ts';
import type { Borrower } from './borrower.ts';
import type { PartnerStatus } from './flock-state.ts';
import type { Hop, LentKind } from './flock-wire.ts';
import type { Lender } from './lender.ts';
import type { PartnerState } from './partner.ts';
import { poolName, wayText } from './paths.ts';

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
    ...beyond(name, offers),
    ...(state.takesForwarded ? { takesForwarded: true } : {}),
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
        ...wayOut(job),
      })),
      ...here.map(({ request, phase, startedAt, suspended, end, passage }) => ({
        key: request.key,
        user: request.owner,
        where: 'here' as const,
        is: stateOf(end ? 'ended' : phase, startedAt, suspended),
        cpus: request.size.cpus,
        ...(passage ? { way: wayText([...passage.path.map(nameOf), name], passage.to.map(nameOf)) } : {}),
      })),
    ],
    // Whole minutes: what changes each second would be written each second.
    ...(detour === undefined ? {} : { detour: { message: detour, seconds: Math.ceil(left / 60) * 60 } }),
    refusals: state.refusals.map((one) => ({ ...one })),
  };
}

/** What a partner offers of pools beyond it. */
function beyond(name: string, offers: readonly LentKind[]): Pick<PartnerStatus, 'beyond'> {
  const pools = new Map<string, { cores: number; machines: number }>();
  for (const { path = [], all, machines } of offers) {
    if (path.length === 0) continue;
    const pool = poolName(name, path);
    const known = pools.get(pool);
    pools.set(pool, { cores: (known?.cores ?? 0) + all.cpus, machines: (known?.machines ?? 0) + machines });
  }
  return pools.size === 0 ? {} : { beyond: [...pools].map(([pool, much]) => ({ pool, ...much })) };
}

function wayOut({ partner, path = [], to = [] }: BorrowedJob): { readonly way?: string } {
  return path.length + to.length === 0 ? {} : { way: wayText(path.map(nameOf), [partner, ...to.map(nameOf)]) };
}

function nameOf({ name }: Hop): string {
  return name;
}

function stateOf(phase: string, startedAt: number | undefined, suspended: boolean | undefined): string {
  if (phase === 'ended' || startedAt === undefined) return phase;
  return suspended ? 'suspended' : 'running';
}
