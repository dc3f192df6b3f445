import { expect, it } from 'vitest';
import { slotAds } from '../../src/pool/central-manager/slot-ads.ts';
import { LOOKED_AT, lookAtMachines } from '../../src/queue/usage-machines.ts';
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
  const some = slotAds(pool.centralManager, LOOKED_AT);
  expect([...lookAtMachines(some)]).toEqual([...whole]);
  expect(new Set(some.flatMap((one) => Object.keys(one)))).toEqual(new Set(LOOKED_AT));
});
