import type { WaitInPool } from '../../wire/client-wire.ts';
import { parseAttemptKey } from '../../../job/ids.ts';
import { counted } from '../../../util/plain-text.ts';
import type { Attempt } from '../attempts.ts';
import type { CentralManager } from '../central-manager.ts';
import type { Told } from './dedicated.ts';
import { gangOf } from './nodes.ts';

/** Why a parallel job waits in the pool, a sentence for each reason. */
export function whyGangWaits(centralManager: CentralManager, attempt: Attempt): WaitInPool {
  const { gangs } = centralManager;
  const gang = gangOf(attempt.key);
  const { procs = 1, count = 1 } = attempt.request.gang ?? {};
  const here = gangs.waiting(gang);
  if (here.length < procs) {
    const procsHere = here.map(({ key }) => parseAttemptKey(key)?.proc ?? 0).sort((a, b) => a - b);
    const missing = Array.from({ length: procs }, (_, proc) => proc).filter((proc) => !procsHere.includes(proc));
    return {
      lines: [
        `It starts together with the other jobs of its cluster, and waits for ${missing.length === 1 ? 'job' : 'jobs'} ${missing.map((proc) => `${parseAttemptKey(attempt.key)?.cluster}.${proc}`).join(', ')}.`,
      ],
    };
  }
  const told = gangs.told.get(gang);
  const wanted = here.reduce((sum, { request }) => sum + (request.gang?.count ?? count), 0);
  const last = attempt.why === undefined ? [] : [`The last start was given up: ${attempt.why}.`];
  const lines = [told ? sentence(told) : `It waits for ${counted(wanted, 'slot')}, and is about to start.`, ...last];
  const { cpus, memoryMb } = attempt.request.size;
  return { lines, ...(told?.is === 'never' ? { wants: { cpus, memoryMb } } : {}) };
}

function sentence(told: Told): string {
  const { wanted } = told;
  switch (told.is) {
    case 'never':
      return `It needs ${counted(wanted, 'slot')} at once, and the pool has ${told.most} for it in all: it is passed over until there are more.`;
    case 'short':
      return `It needs ${counted(wanted, 'slot')} at once; ${told.free} are free, but the allocations of ${counted(told.soon, 'worker')} end too soon.`;
    case 'behind':
      return `It waits for ${wanted - told.free} of ${counted(wanted, 'slot')}: other parallel jobs come first.`;
    case 'next': {
      const free = Math.min(told.free, wanted);
      const when = Number.isFinite(told.at)
        ? `the others are expected ${told.at < 60 ? 'within a minute' : `at ${clock(told.at)}`}`
        : 'it is not known when the others will be free';
      return `It is the next parallel job, and waits for ${wanted - free} of ${counted(wanted, 'slot')}; ${free} are held for it, and ${when}.`;
    }
  }
}

function clock(seconds: number): string {
  return new Date(Date.now() + seconds * 1000).toTimeString().slice(0, 5);
}
