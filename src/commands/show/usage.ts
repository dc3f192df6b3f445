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
    ...(Object.keys(all.preemptions).length > 0 ? [`Preemptions: ${causes(all.preemptions)}`] : []),
    ...(busiest && busiest.jobs > 0
      ? [
          `Longest queue: ${busiest.jobs.toFixed(1)} jobs on average, at ${String(busiest.hour).padStart(2, '0')} h UTC`,
          ...hourLines(hours, width),
        ]
      : []),
    ...machineLines(report.machines, width),
  ];
}

/** `7 (owner 5, rank 2)` */
function causes(preemptions: UsageSum['preemptions']): string {
  const all = Object.entries(preemptions).sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1));
  const sum = all.reduce((total, [, times]) => total + times, 0);
  return `${sum} (${all.map(([cause, times]) => `${cause} ${times}`).join(', ')})`;
}

function hourLines(hours: UsageReport['hours'], width: Width): string[] {
  const row = (name: string, of: (hour: UsageReport['hours'][number]) => number, from: number) => [
    name,
    ...hours.slice(from, from + 12).map((hour) => ` ${of(hour).toFixed(1)}`),
  ];
  return [0, 12].flatMap((from) => [
    '',
    ...tableLines(
      ['Jobs by the hour', ...hours.slice(from, from + 12).map((_, i) => ` ${String(from + i).padStart(2, '0')}`)],
      [row('Idle', ({ idle }) => idle, from), row('Running', ({ running }) => running, from)],
      width,
    ),
  ]);
}

function machineLines(machines: UsageReport['machines'], width: Width): string[] {
  if (machines.length === 0) return [];
  const percent = (part: number) => `${(100 * part).toFixed(1)} %`;
  const rows = machines.map((one) => [
    one.name,
    one.coreHours.toFixed(2),
    percent(one.availability),
    percent(one.utilization),
    percent(one.suspended),
  ]);
  return ['', ...tableLines(['Machine', ' Core-hrs', ' Available', ' Used', ' Suspended'], rows, width)];
}
