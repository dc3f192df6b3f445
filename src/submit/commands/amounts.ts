import { ERROR, Real, toDouble, isInt } from '../../classad/api.ts';
import type { JobMaker, Step } from '../maker.ts';
import { UNIVERSE } from '../../job/universe.ts';

const AMOUNTS: readonly (readonly [command: string, attribute: string, example: string])[] = [
  ['request_cpus', 'RequestCpus', '4'],
  ['request_gpus', 'RequestGPUs', '1'],
  ['request_memory', 'RequestMemory', '1.5G'],
  ['request_disk', 'RequestDisk', '20G'],
  ['batch_runtime', 'BatchRuntime', '2h'],
];

/** Refuses what can be no amount: a negative number, a string, and at a site an error. */
function checkAmount(job: JobMaker, [command, attribute, example]: (typeof AMOUNTS)[number], atSite: boolean): void {
  const attr = job.draft.get(attribute);
  if (attr === undefined) return;
  const value = job.draft.value(attribute);
  const remedy = `Write for example ${command} = ${example}`;
  if (value === undefined) {
    if (attr.kind !== 'expr' || !/^\w+$/.test(attr.text) || /^undefined$/i.test(attr.text)) return;
    const missing = `${command} = ${attr.text}: the job has no such attribute`;
    if (atSite) return job.warn(`${missing}, so nothing is requested.`, command);
    const machines = `, or TARGET.${attr.text} for an attribute of the machines`;
    return refuse(job, command, `${missing}, so no machine would match`, `${remedy}${machines}`, attribute);
  }
  // Whether an expression is an error may depend on the machine.
  if (value === ERROR && !atSite) return;
  const amount = typeof value === 'boolean' || isInt(value) || value instanceof Real ? toDouble(value) : Number.NaN;
  if (amount >= 0) return;
  const text = `${command} = ${attr.text} is not an amount`;
  if (atSite) throw job.fault(command, text, [remedy], `MY.${attribute}`);
  refuse(job, command, text, remedy, attribute);
}

/** condor_submit accepts these, and so does a dry run. */
function refuse(job: JobMaker, command: string, text: string, remedy: string, attribute: string): void {
  if (job.scope.policy.dryRun) return job.warn(`${text}. A real submit is refused.`, command);
  throw job.fault(command, text, [remedy], `MY.${attribute}`);
}

/**
 * What can be no amount would never match, or be left out of the request without a word. No negotiator evaluates an
 * expression for a site's batch system, so that one must give an amount at once.
 */
export const amounts: Step = {
  name: '(amounts)',
  run(job) {
    const atSite = job.kind.universe === UNIVERSE.grid || job.gridType !== '';
    for (const amount of AMOUNTS) checkAmount(job, amount, atSite);
  },
};
