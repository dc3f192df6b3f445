import type * as z from 'zod';
import type { AdText } from '../index.ts';
import { readNumber, readString } from '../job/values.ts';
import type { POOL } from './schemas.ts';
import type { Web } from './web.ts';

type Pool = z.infer<typeof POOL>;

/** How long what ended jobs used is not summed again; milliseconds. */
const USAGE_MS = 60_000;

/** The pool's slots, who shares it, and the pilots that are on their way to it. */
export function poolOf(web: Web): Promise<Pool> {
  return web.recent.get('pool', 1000, () => look(web));
}

async function look({ gryphus, recent }: Web): Promise<Pool> {
  const [slots, accounts, glideins] = await Promise.all([gryphus.slots(), gryphus.accounts(), gryphus.glideins()]);
  const [owners, pilots, failures, used] = await Promise.all([
    accounts.owners(),
    glideins.list(),
    glideins.failures(),
    recent.get('usage', USAGE_MS, () => accounts.usage('owner')),
  ]);
  return {
    slots: slots.map(slotOf),
    owners: owners.map(({ owner, priority, realPriority, factor, inUse }) => ({
      owner,
      priority,
      realPriority,
      factor,
      inUse,
    })),
    pilots: pilots.map(({ job, site, is, cores, busy, age, host, left, message }) => ({
      job,
      site,
      is,
      cores,
      busy,
      age,
      host,
      left,
      message,
    })),
    used: {
      from: used.from,
      owners: used.by.map(({ name, jobs, capacityHours, cpuHours, waitRatio, leverage }) => ({
        owner: name,
        jobs,
        capacityHours,
        cpuHours,
        waitRatio: waitRatio?.median,
        leverage,
      })),
    },
    failures: [...failures].flatMap(([site, all]) => all.map(({ at, message }) => ({ site, at, message }))),
  };
}

function slotOf(ad: AdText): Pool['slots'][number] {
  const source = { get: (name: string) => ad[name] };
  const text = (name: string) => readString(source, name) ?? '';
  const number = (name: string) => readNumber(source, name) ?? 0;
  return {
    name: text('Name'),
    machine: text('Machine'),
    site: text('GryphusSite'),
    state: text('State'),
    activity: text('Activity'),
    whole: ad['PartitionableSlot']?.toLowerCase() === 'true',
    cpus: number('Cpus'),
    memory: number('Memory'),
    gpus: number('GPUs'),
    load: number('LoadAvg'),
    job: text('JobId'),
    user: text('RemoteUser'),
    since: number('EnteredCurrentActivity'),
  };
}
