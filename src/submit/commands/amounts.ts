import { Real, toDouble, isInt } from '../../classad/api.ts';
import type { Step } from '../maker.ts';
import { UNIVERSE } from '../../job/universe.ts';

const AMOUNTS: readonly (readonly [command: string, attribute: string, example: string])[] = [
  ['request_cpus', 'RequestCpus', '4'],
  ['request_gpus', 'RequestGPUs', '1'],
  ['request_memory', 'RequestMemory', '1.5G'],
  ['request_disk', 'RequestDisk', '20G'],
  ['batch_runtime', 'BatchRuntime', '2h'],
];

/**
 * What a site's batch system is asked for must be an amount: no negotiator evaluates the expression, and anything else
 * would silently be left out of the request.
 */
export const amounts: Step = {
  name: '(amounts)',
  run(job) {
    if (job.kind.universe !== UNIVERSE.grid && job.gridType === '') return;
    for (const [command, attribute, example] of AMOUNTS) {
      const attr = job.draft.get(attribute);
      if (attr === undefined) continue;
      const value = job.draft.value(attribute);
      if (value === undefined) {
        if (attr.kind === 'expr' && /^\w+$/.test(attr.text) && !/^undefined$/i.test(attr.text)) {
          job.warn(`${command} = ${attr.text}: the job has no such attribute, so nothing is requested.`, command);
        }
        continue;
      }
      const amount = typeof value === 'boolean' || isInt(value) || value instanceof Real ? toDouble(value) : Number.NaN;
      if (amount >= 0) continue;
      const remedy = `Write for example ${command} = ${example}`;
      throw job.fault(command, `${command} = ${attr.text} is not an amount`, [remedy], `MY.${attribute}`);
    }
  },
};
