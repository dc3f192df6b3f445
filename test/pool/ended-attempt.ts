import type { AttemptKey } from '../../src/job/ids.ts';
import type { Attempt } from '../../src/pool/central-manager/attempts.ts';

/** An attempt that has ended at the worker `w`, with what it left still there. */
export function endedAttempt(key: AttemptKey): Attempt {
  return {
    key,
    client: 'me',
    request: {
      key,
      owner: 'u',
      size: { cpus: 1, memoryMb: 1, diskKb: 1, gpus: 0 },
      prio: 0,
      lease: 2400,
      ad: {},
      spec: { base: 'b', args: [] },
    },
    kind: undefined,
    order: 0,
    submitted: 0,
    phase: 'ended',
    worker: 'w',
  };
}
