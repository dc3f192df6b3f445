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
    const rows = status.jobs.map(({ key, user, where, is, cpus }) => [key, user, where, is, String(cpus)]);
    lines.push('', ...tableLines(['Attempt', 'User', 'Where', 'State', ' Cores'], rows, width));
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
