import { describe, expect, it } from 'vitest';
import { lightWaits, month, type MonthOptions } from '../../bench/pool/month.ts';
import { SETTINGS } from '../../src/config/settings.ts';
import { presets } from '../../src/config/table.ts';
import { sharingRules } from '../../src/pool/central-manager/sharing-rules.ts';
import { seeded } from '../seeded.ts';
import { SLOW } from '../slow.ts';

const UPDOWN = sharingRules({ ...presets(SETTINGS), 'pool.priority': 'updown' });

describe.skipIf(!SLOW)("the paper's month, with 23 stations and a heavy user who always has 30 jobs", () => {
  const options = (rules: MonthOptions['rules']): MonthOptions => ({
    stations: 23,
    days: 30,
    rules,
    busy: 0.25,
    queued: 30,
    tickSeconds: 120,
    random: seeded(1988),
  });

  it('lets light users hardly wait, and takes hardly anything from the heavy one', async () => {
    const fifo = await month(options(undefined));
    const fair = await month(options(UPDOWN));
    const waits = lightWaits(fair);
    const short = waits.filter((ratio) => ratio < 0.1).length / waits.length;
    const part = fair.cpuSeconds / fair.seconds;
    const heavy = fair.heavyHours / fifo.heavyHours;
    process.stderr.write(`light jobs that hardly waited ${short}, heavy ${heavy} of FIFO's, cpu ${part}\n`);
    expect(waits.length).toBeGreaterThan(150);
    expect(short).toBeGreaterThanOrEqual(0.95);
    expect(heavy).toBeGreaterThanOrEqual(0.97);
    expect(part).toBeLessThan(0.01);
  }, 600_000);

  it('costs less than 1 % of a core with 1,000 stations, looked at every 5 s', async () => {
    const large = await month({
      ...options(UPDOWN),
      stations: 1000,
      days: 1 / 12,
      queued: 1300,
      tickSeconds: 5,
    });
    process.stderr.write(`1,000 stations: cpu ${large.cpuSeconds / large.seconds}\n`);
    expect(large.cpuSeconds / large.seconds).toBeLessThan(0.01);
  }, 600_000);
});
