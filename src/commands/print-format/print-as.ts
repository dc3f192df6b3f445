import type { AdText } from '../../index.ts';
import { numberOf, stringOf } from '../show/ad.ts';
import { duration, shortDate } from '../show/dates.ts';
import { command, letter, runTime, size } from '../show/q-rows.ts';

/** Formats a value in a special way. `value`: the column's text; `now`: Unix seconds. `undefined`: unknown. */
type PrintAs = (value: string, ad: AdText, now: number) => string | undefined;

const UNIVERSES: Readonly<Record<string, string>> = { 5: 'vanilla', 7: 'scheduler', 9: 'grid', 12: 'local' };

const seconds = (value: string): number | undefined => (/^-?\d+(\.\d+)?$/.test(value) ? Number(value) : undefined);
const readable =
  (unit: number): PrintAs =>
  (value) => {
    const given = seconds(value);
    if (given === undefined) return undefined;
    let size = given * unit;
    let at = 0;
    for (; size >= 1024 && at < 4; at++) size /= 1024;
    return `${size.toFixed(1)} ${['B ', 'KB', 'MB', 'GB', 'TB'][at] ?? ''}`;
  };

/** HTCondor's names (manual, "-print-format", PRINTAS) for which we have the data. */
const PRINT_AS: Readonly<Record<string, PrintAs>> = {
  BATCH_NAME: (_, ad) => stringOf(ad, 'JobBatchName') ?? `ID: ${ad['ClusterId'] ?? ''}`,
  CPU_TIME: (value) => mapped(seconds(value), duration),
  DAG_OWNER: (_, ad) => stringOf(ad, 'DAGNodeName') ?? stringOf(ad, 'Owner'),
  DATE: (value) => mapped(seconds(value), shortDate),
  ELAPSED_TIME: (value, _, now) => mapped(seconds(value), (since) => duration(Math.max(0, now - since))),
  GRID_JOB_ID: (_, ad) => stringOf(ad, 'GridJobId')?.split(' ').at(-1),
  GRID_RESOURCE: (_, ad) => stringOf(ad, 'GridResource'),
  JOB_DESCRIPTION: (_, ad) => stringOf(ad, 'JobDescription') ?? command(ad),
  JOB_ID: (_, ad) => `${ad['ClusterId'] ?? '?'}.${ad['ProcId'] ?? '?'}`,
  JOB_STATUS: (_, ad) => letter(undefined, ad),
  JOB_STATUS_RAW: (value) =>
    [undefined, 'Idle', 'Running', 'Removed', 'Completed', 'Held', 'Transferring', 'Suspended'][Number(value)],
  JOB_UNIVERSE: (value) => UNIVERSES[value],
  MEMORY_USAGE: (_, ad) => size(ad),
  OWNER: (_, ad) => stringOf(ad, 'Owner'),
  QDATE: (_, ad) => mapped(numberOf(ad, 'QDate'), shortDate),
  READABLE_BYTES: readable(1),
  READABLE_KB: readable(1024),
  READABLE_MB: readable(1024 * 1024),
  REMOTE_HOST: (_, ad) => stringOf(ad, 'RemoteHost') ?? stringOf(ad, 'LastRemoteHost'),
  RUNTIME: (_, ad, now) => runTime(ad, now),
};

export const PRINT_AS_NAMES: readonly string[] = Object.keys(PRINT_AS);

export function isPrintAs(name: string): boolean {
  return Object.hasOwn(PRINT_AS, name);
}

export function printAs(name: string, value: string, ad: AdText, now: number): string | undefined {
  return PRINT_AS[name]?.(value, ad, now);
}

function mapped<T, R>(value: T | undefined, to: (value: T) => R): R | undefined {
  return value === undefined ? undefined : to(value);
}
