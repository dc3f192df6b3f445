import { NO_CPU, type ResourceRow, type Spent, type SpentInAll } from '../user-log/event.ts';
import { readNumber, type TextSource } from './values.ts';

/** The attributes from which the figures at a job's end are computed. */
export const USAGE_ATTRIBUTES: readonly string[] = [
  'RemoteUserCpu',
  'RemoteSysCpu',
  'CumulativeRemoteUserCpu',
  'CumulativeRemoteSysCpu',
  'LastRemoteWallClockTime',
  'BytesSent',
  'BytesRecvd',
  'RequestCpus',
  'RequestDisk',
  'RequestMemory',
  'DiskUsage',
  'MemoryUsage',
];

/** What a job's last run used. Bytes that the job sent count as received here. */
export function spentOf(ad: TextSource): Spent {
  return {
    runRemote: { user: number(ad, 'RemoteUserCpu'), system: number(ad, 'RemoteSysCpu') },
    runLocal: NO_CPU,
    sent: number(ad, 'BytesRecvd'),
    received: number(ad, 'BytesSent'),
  };
}

export function spentInAllOf(ad: TextSource): SpentInAll {
  const { sent, received } = spentOf(ad);
  return {
    totalRemote: { user: number(ad, 'CumulativeRemoteUserCpu'), system: number(ad, 'CumulativeRemoteSysCpu') },
    totalLocal: NO_CPU,
    totalSent: sent,
    totalReceived: received,
  };
}

/** The rows of the table "Partitionable Resources". */
export function resourcesOf(ad: TextSource): ResourceRow[] {
  const rows: ResourceRow[] = [];
  const add = (name: string, usage: number | undefined, request: number | undefined) => {
    if (usage === undefined && request === undefined) return;
    rows.push({
      name,
      ...(usage === undefined ? {} : { usage }),
      ...(request === undefined ? {} : { request }),
    });
  };
  const wall = number(ad, 'LastRemoteWallClockTime');
  const cpu = number(ad, 'RemoteUserCpu') + number(ad, 'RemoteSysCpu');
  add('Cpus', wall > 0 ? Math.round((cpu / wall) * 100) / 100 : undefined, readNumber(ad, 'RequestCpus'));
  add('Disk', readNumber(ad, 'DiskUsage'), readNumber(ad, 'RequestDisk'));
  add('Memory', readNumber(ad, 'MemoryUsage'), readNumber(ad, 'RequestMemory'));
  add('TimeExecute', Math.round(wall), undefined);
  return rows;
}

function number(ad: TextSource, name: string): number {
  return readNumber(ad, name) ?? 0;
}
