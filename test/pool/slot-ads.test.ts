import { expect, it } from 'vitest';
import { looksOf, slotAds } from '../../src/pool/central-manager/slot-ads.ts';
import { lookAtMachines } from '../../src/queue/usage-machines.ts';
import { OneCorePool } from './one-core-pool.ts';

it('what is looked at of the slots for the machines of a day shows the same as the whole ads', async () => {
  const ad = {
    Machine: '"m"',
    GryphusSite: '"cluster"',
    PartitionableSlot: 'true',
    TotalCpus: '4',
    MachineResources: '"Cpus Memory Disk GPUs Licences"',
    LoadAvg: '0.5',
  };
  const pool = new OneCorePool(ad, undefined, 4);
  pool.submit(1);
  await pool.starts(1);
  pool.submit(2);
  await pool.starts(2);
  pool.centralManager.hear('w', { t: 'suspended', key: 'a.2.0.1' }, Buffer.alloc(0));
  const whole = lookAtMachines(slotAds(pool.centralManager));
  expect([...whole]).toEqual([['m (cluster)', { looks: 1, open: 1, cores: 4, busy: 1, suspended: 1 }]]);
  expect([...lookAtMachines(looksOf(pool.centralManager))]).toEqual([...whole]);
  const idle = new OneCorePool(ad, undefined, 4).centralManager;
  expect([...lookAtMachines(looksOf(idle))]).toEqual([...lookAtMachines(slotAds(idle))]);
  expect(Object.keys([...looksOf(idle)][0] ?? {})).not.toContain('LoadAvg');
});

it('more machines than a day has room for are counted together, and those that it has are not among them', () => {
  const machine = (name: string) => ({
    Machine: `"${name}"`,
    GryphusSite: '"local"',
    PartitionableSlot: 'true',
    TotalCpus: '2',
  });
  const seen = lookAtMachines(['a', 'b', 'c', 'd'].map(machine), ['d', 'gone'], 3);
  expect([...seen].map(([name, { looks, cores }]) => [name, looks, cores])).toEqual([
    ['a', 1, 2],
    ['(others)', 2, 4],
    ['d', 1, 2],
  ]);
});
