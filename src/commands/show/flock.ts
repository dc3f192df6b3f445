import type { PartnerView } from '../../index.ts';
import { counted } from '../../util/plain-text.ts';
import { duration, roughly } from './dates.ts';
import { tableLines } from './table.ts';
import type { Width } from './width.ts';

type Status = NonNullable<PartnerView['status']>;

/** `flock list`. */
export function partnerLines(partners: readonly PartnerView[], width: Width): string[] {
  if (partners.length === 0) return ['There are no agreements with other pools: gryphus flock add --help'];
  const rows = partners.map(({ name, agreement, status, problem }) => [
    name,
    agreement?.to ? 'yes' : 'no',
    agreement?.from ? 'yes' : 'no',
    status ? String(status.offered) : '',
    status ? String(status.borrowed) : '',
    status ? String(status.lent) : '',
    problem ?? stateOf(agreement?.paused === true, status),
  ]);
  return tableLines(['Partner', 'To', 'From', ' Offered', ' Borrowed', ' Lent', 'State'], rows, width);
}

function stateOf(paused: boolean, status: Status | undefined): string {
  if (paused) return 'paused';
  if (!status) return 'no gateway yet (gryphus up; it takes a few seconds)';
  return status.connected ? 'connected' : `not connected: ${status.trouble ?? ''}`;
}

/** `flock show`. `now`: Unix seconds. */
export function agreementLines(
  { name, file, agreement, status, problem }: PartnerView & { readonly file: string },
  now: number,
  width: Width,
): string[] {
  const lines = [`${name}: ${problem ?? stateOf(agreement?.paused === true, status)}`, `  agreement: ${file}`];
  if (!status) return lines;
  if (status.agent !== undefined) lines.push(`  agent: ${status.agent}`);
  if (status.to)
    lines.push(
      status.closed
        ? `  our jobs there: not now (${status.closed.clause}): ${status.closed.message}`
        : `  our jobs there: ${counted(status.borrowed, 'core')} held, ${status.offered} offered on ${counted(status.machines, 'machine')}`,
    );
  for (const { pool, cores, machines } of (status.to && !status.closed && status.beyond) || [])
    lines.push(`  of these ${pool}: ${cores} offered on ${counted(machines, 'machine')}`);
  if (status.to && status.takesForwarded) lines.push('  it takes jobs that we pass on for others');
  if (agreement && agreement.forward.length > 0)
    lines.push(`  their jobs are passed on to ${agreement.forward.join(', ')}`);
  if (agreement?.forwarded) lines.push('  jobs that they pass on for others are taken');
  if (status.from)
    lines.push(
      `  their jobs here: ${counted(status.lent, 'core')} held${status.lending ? `; no more (${status.lending.clause}): ${status.lending.message}` : ''}`,
    );
  if (status.detour) {
    const { message, seconds } = status.detour;
    const again = seconds > 0 ? `tried again within ${roughly(seconds)}` : 'tried again with the next job';
    lines.push(`  results come by the gateways: a direct connection failed (${message}); ${again}`);
  }
  const used = ({ lent, borrowed }: Status['day']) =>
    `they used ${lent.toFixed(2)} core hours here, we ${borrowed.toFixed(2)} there`;
  lines.push(`  last day: ${used(status.day)}`, `  last 30 days: ${used(status.month)}`);
  if (status.balance !== 'none') {
    const { lent, borrowed } = status[status.balance];
    lines.push(
      `  balance of a ${status.balance}: ${(lent - borrowed).toFixed(2)} core hours lent ahead, of ${status.slack}`,
    );
  }
  if (status.jobs.length > 0) {
    const rows = status.jobs.map(({ key, user, where, is, cpus, way }) => [
      key,
      user,
      where,
      is,
      String(cpus),
      way ?? '',
    ]);
    const passed = status.jobs.some(({ way }) => way !== undefined);
    const heads = ['Attempt', 'User', 'Where', 'State', ' Cores', ...(passed ? ['Way'] : [])];
    lines.push('', ...tableLines(heads, passed ? rows : rows.map((row) => row.slice(0, -1)), width));
  }
  if (status.refusals.length > 0) {
    const rows = status.refusals.map(({ at, by, clause, message, times }) => [
      duration(Math.max(0, now - at)),
      by === 'us' ? 'we' : 'they',
      clause,
      String(times),
      message,
    ]);
    lines.push('', ...tableLines([' Ago', 'Refused by', 'Clause', ' Times', 'Why'], rows, width));
  }
  return lines;
}
