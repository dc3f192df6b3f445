import { bootId } from '../../util/boot-clock.ts';
import { ownsTerminal } from '../host/processes.ts';
import { allSources } from '../owner/idle/sources.ts';
import type { ChirpProxies } from './chirp/chirp-proxies.ts';
import { OwnerControl, type OwnerControlOptions } from './owner-control.ts';
import { jobAdOf } from './job-ad-of.ts';
import { ownerOrders } from './owner-orders.ts';
import type { WorkerMachine } from './worker-machine.ts';

export interface OwnerControlOpening
  extends Pick<OwnerControlOptions, 'dir' | 'runs' | 'say' | 'announce' | 'log' | 'clock'> {
  readonly machine: WorkerMachine;
  readonly environment: NodeJS.ProcessEnv;
  /** Through which the job's home is told of checkpoints. */
  readonly chirp: ChirpProxies;
}

/** The control of a real worker on its machine. */
export function ownerControl({ environment, chirp, ...options }: OwnerControlOpening): OwnerControl {
  const { machine, runs, say } = options;
  const control: OwnerControl = new OwnerControl({
    ...options,
    boot: bootId(),
    jobOf: jobAdOf,
    orders: ownerOrders(() => ({ owner: control, say, chirp })),
    sources: (changed) =>
      allSources(changed, environment, {
        ignored: () => machine.ignoredTerminals,
        isOurs: (device) => ownsTerminal(device, new Set([...runs()].map(({ key }) => key))),
      }),
  });
  return control;
}
