import { expect, it } from 'vitest';
import {
  claimedLines,
  isNamed,
  machineLines,
  poolLine,
  slotLines,
  stateLines,
  totalLines,
} from '../../src/commands/show/slots.ts';

const common = { OpSys: '"LINUX"', Arch: '"X86_64"', OpSysAndVer: '"Debian12"', LoadAvg: '0.5', Machine: '"node7"' };
const slot = (name: string, state: string, activity: string, more: Record<string, string>) => ({
  ...common,
  Name: `"${name}"`,
  State: `"${state}"`,
  Activity: `"${activity}"`,
  EnteredCurrentState: '900',
  EnteredCurrentActivity: '940',
  GryphusSite: '"far"',
  ...more,
});
const ADS = [
  slot('slot1@far-1', 'Unclaimed', 'Idle', {
    PartitionableSlot: 'true',
    Cpus: '6',
    Memory: '2048',
    TotalCpus: '8',
    TotalMemory: '4096',
    TotalGPUs: '0',
    NumDynamicSlots: '1',
  }),
  slot('slot1_1@far-1', 'Claimed', 'Busy', { Cpus: '2', Memory: '2048', RemoteUser: '"me"', JobId: '"7.3"' }),
];
const squeezed = (lines: readonly string[]) => lines.map((line) => line.replaceAll(/ +/g, ' ').trim());
const TOTALS = [
  'Total Owner Claimed Unclaimed Matched Preempting Drain Backfill BkIdle',
  'X86_64/LINUX 2 0 1 1 0 0 0 0 0',
  'Total 2 0 1 1 0 0 0 0 0',
];

it('slots are shown as condor_status shows them, with their totals', () => {
  expect(squeezed(slotLines(ADS, 1000, undefined))).toEqual([
    'Name OpSys Arch State Activity LoadAv Mem ActvtyTime Site',
    'slot1@far-1 LINUX X86_64 Unclaimed Idle 0.500 2048 0+00:01:00 far',
    'slot1_1@far-1 LINUX X86_64 Claimed Busy 0.500 2048 0+00:01:00 far',
    '',
    ...TOTALS,
  ]);
  expect(squeezed(claimedLines(ADS.slice(1), 1000, undefined)).slice(0, 2)).toEqual([
    'Name OpSys Arch LoadAv RemoteUser Job Activity ActvtyTime Site',
    'slot1_1@far-1 LINUX X86_64 0.500 me 7.3 Busy 0+00:01:00 far',
  ]);
  expect(squeezed(stateLines(ADS, 1000, undefined))[1]).toBe(
    'slot1@far-1 6 2048 0.500 Unclaimed 0+00:01:40 Idle 0+00:01:00 far',
  );
  expect(squeezed(machineLines(ADS, undefined)).slice(1, 2)).toEqual([
    'far-1 X86_64/Debian12 1 8 0 4.00 6 2.00 0.50 far',
  ]);
  expect(poolLine(ADS)).toBe('1 machine; 2 cores claimed, 6 unclaimed');
  expect(poolLine([])).toBe(undefined);
});

it('workers that are away have a column of their own in the totals, when there are any', () => {
  const away = slot('slot1@gone', 'Unknown', 'Idle', {});
  expect(squeezed(totalLines([...ADS, away], undefined))[0]).toBe(`${TOTALS[0]} Unknown`);
  expect(totalLines(ADS, 60).every((line) => line.length <= 60)).toBe(true);
});

it('slots are named as they are called, or by their machine', () => {
  const named = (name: string) => ADS.filter((ad) => isNamed(ad, name)).length;
  expect(['slot1@far-1', 'far-1', 'node7', 'slot1', 'far'].map(named)).toEqual([1, 2, 2, 0, 0]);
});
