import { readFileSync } from 'node:fs';
import { processesOf } from '../../../src/pool/host/processes.ts';
import { until } from '../../agent/agent.ts';

/** The processor time of all processes of an attempt so far, in ticks. */
export function ticksOf(key: string): number {
  const all = processesOf(new Set([key])).map(({ pid }) => {
    try {
      const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
      const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
      return Number(fields[11]) + Number(fields[12]);
    } catch {
      return 0;
    }
  });
  return all.reduce((sum, ticks) => sum + ticks, 0);
}

/** When an attempt used the processor for the last time, after which nothing of it ran for `quietMs`. */
export async function stopped(key: string, quietMs = 3000): Promise<number> {
  let seen = { ticks: -1, at: 0 };
  return until('the job to stop', () => {
    const ticks = ticksOf(key);
    const now = Date.now();
    if (ticks !== seen.ticks) seen = { ticks, at: now };
    return now - seen.at > quietMs ? seen.at : undefined;
  });
}
