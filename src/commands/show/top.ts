import { basename } from 'node:path';
import { formatJobId, type TopRow } from '../../index.ts';
import { tableLines } from './table.ts';
import type { Width } from './width.ts';

/** A table of running jobs, the busiest first. `before`: the previous rows, for CPU% since then. */
export function topLines(rows: readonly TopRow[], before: readonly TopRow[], width: Width): string[] {
  const last = new Map(before.map((row) => [formatJobId(row.id), row]));
  const shares = new Map(rows.map((row) => [row, share(row, last.get(formatJobId(row.id)))]));
  const sorted = [...rows].sort((a, b) => (shares.get(b) ?? -1) - (shares.get(a) ?? -1));
  return tableLines(
    ['JOB', 'OWNER', ' CPU%', ' CPU', ' MEMORY', ' TIME', 'HOST', 'COMMAND'],
    sorted.map((row) => [
      formatJobId(row.id),
      row.owner,
      shares.get(row)?.toFixed(0) ?? '-',
      clock(row.cpuSeconds),
      row.memoryKb === undefined ? '-' : `${(row.memoryKb / 1024).toFixed(0)} MB`,
      clock(row.elapsed),
      row.suspended ? `${row.host} (suspended)` : row.host,
      basename(row.command),
    ]),
    width,
    { gives: ['COMMAND', 'HOST'], drops: ['OWNER'] },
  );
}

/** Per cent of one core: since the previous look at the same run, otherwise since its start. */
function share(row: TopRow, last: TopRow | undefined): number | undefined {
  if (row.cpuSeconds === undefined || row.elapsed === undefined) return undefined;
  const same = last?.cpuSeconds !== undefined && last.elapsed !== undefined && last.elapsed < row.elapsed;
  const cpu = row.cpuSeconds - (same ? (last.cpuSeconds ?? 0) : 0);
  const time = row.elapsed - (same ? (last.elapsed ?? 0) : 0);
  return time <= 0 ? 0 : (Math.max(0, cpu) / time) * 100;
}

/** `1:02:03`, `2:03` */
function clock(seconds: number | undefined): string {
  if (seconds === undefined) return '-';
  const whole = Math.floor(seconds);
  const two = (n: number) => String(n).padStart(2, '0');
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}
