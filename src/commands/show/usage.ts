import type { UsageBy, UsageReport, UsageSum } from '../../index.ts';
import { tableLines } from './table.ts';
import type { Width } from './width.ts';

/** The report as a person reads it. */
export function usageLines(report: UsageReport, by: UsageBy, width: Width): string[] {
  const { all, heavy, light, from, to, local, hours } = report;
  const heads = [
    by.replace(/^./, (letter) => letter.toUpperCase()),
    ' Jobs',
    ' Core-hrs',
    ' CPU-hrs',
    ' Mean run (h)',
    ' Wait ratio',
    ' Median',
    ' Leverage',
  ];
  const row = (one: UsageSum, name = one.name) => [
    name,
    String(one.jobs),
    one.capacityHours.toFixed(2),
    one.cpuHours.toFixed(2),
    one.demandHours.toFixed(2),
    one.waitRatio === undefined ? '-' : one.waitRatio.mean.toFixed(3),
    one.waitRatio === undefined ? '-' : one.waitRatio.median.toFixed(3),
    one.leverage === undefined ? '-' : one.leverage.toFixed(0),
  ];
  const rows = [...report.by.map((one) => row(one)), row(all, 'Total')];
  if (heavy.jobs > 0) rows.push(row(heavy, 'Heavy owners'), row(light, 'Light owners'));
  const perHour = all.cpuHours > 0 ? ` (${(all.checkpoints / all.cpuHours).toFixed(2)} for each CPU hour)` : '';
  const busiest = hours.map((one, hour) => ({ hour, jobs: one.idle + one.running })).sort((a, b) => b.jobs - a.jobs)[0];
  return [
    `Jobs that ended from ${from} to ${to}`,
    ...tableLines(heads, rows, width, { drops: ['Median', 'CPU-hrs'] }),
    '',
    `Our daemons: ${local.map(({ daemon, seconds }) => `${daemon} ${seconds.toFixed(1)} s`).join(', ') || 'nothing measured yet'}`,
    `Checkpoints: ${all.checkpoints}${perHour}; suspensions: ${all.suspensions} (${all.suspendedHours.toFixed(2)} h); restarts: ${all.restarts}`,
    ...(busiest && busiest.jobs > 0
      ? [`Longest queue: ${busiest.jobs.toFixed(1)} jobs on average, at ${String(busiest.hour).padStart(2, '0')} h UTC`]
      : []),
  ];
}
