import { sizeOf } from '../calculate.ts';
import type { JobMaker, Step } from '../maker.ts';
import type { MacroTable } from '../macros.ts';
import { setGpuLimits } from './gpus.ts';
import { retryPlan } from './evict.ts';
import { UNIVERSE } from '../../job/universe.ts';

/** HTCondor's defaults: JOB_DEFAULT_REQUESTCPUS and similar. */
const DEFAULTS = {
  cpus: '1',
  memory: '128',
  disk: 'MAX({ 1024, (TransferInputSizeMB+1) * 1.25 }) * 1024',
} as const;

const NUMBER = 'Write a number, or a ClassAd expression that gives one.';
const GPUS = `${NUMBER} Use require_gpus to choose the kind.`;
const SIZE = 'Write a size like 512M, 1.5G or 2T, or a ClassAd expression that gives a number of';

const MB = 2 ** 20;
const KB = 2 ** 10;

interface Resource {
  readonly command: string;
  readonly attribute: string;
  readonly standard: string | undefined;
}

/** The requested value or the default; `undefined` if the ad already has a value or none is wanted. */
function wanted(job: JobMaker, { command, attribute, standard }: Resource): string | undefined {
  const text = job.param(command, attribute);
  if (text !== undefined) return text.toLowerCase() === 'undefined' ? undefined : text;
  return job.draft.has(attribute) || job.gridType === 'batch' ? undefined : standard;
}

function setCpus(job: JobMaker): void {
  const text = wanted(job, { command: 'request_cpus', attribute: 'RequestCpus', standard: DEFAULTS.cpus });
  if (text !== undefined) job.setExpr('RequestCpus', text, 'request_cpus', NUMBER);
}

function setGpus(job: JobMaker): void {
  const text = wanted(job, { command: 'request_gpus', attribute: 'RequestGPUs', standard: undefined });
  if (text !== undefined) job.setExpr('RequestGPUs', text, 'request_gpus', GPUS);
  if (job.draft.has('RequestGPUs')) setGpuLimits(job);
}

function setMemory(job: JobMaker): void {
  const given = job.param('request_memory', 'RequestMemory');
  if (given === undefined && !job.draft.has('RequestMemory') && job.draft.has('JobVMMemory')) {
    job.warn('request_memory was NOT specified.  Using RequestMemory = MY.JobVMMemory');
    return job.setExpr('RequestMemory', 'MY.JobVMMemory');
  }
  const text = wanted(job, { command: 'request_memory', attribute: 'RequestMemory', standard: DEFAULTS.memory });
  if (text === undefined) return;
  const size = sizeOf(text, MB, ',');
  if (!size) return job.setExpr('RequestMemory', text, 'request_memory', `${SIZE} MB.`);
  job.setInt('RequestMemory', size.value);
  const plan = { attribute: 'RequestMemory', base: MB };
  if (size.rest.length > 1) return retryPlan(job, { ...plan, command: 'request_memory', values: size.rest.slice(1) });
  const retry = job.param('retry_request_memory');
  const most = job.param('retry_request_memory_max');
  const increase = job.param('retry_request_memory_increase');
  if (retry !== undefined) {
    if (increase !== undefined) {
      job.warn(
        'retry_request_memory_increase will be ignored because retry_request_memory was used',
        'retry_request_memory_increase',
      );
    }
    retryPlan(job, { ...plan, command: 'retry_request_memory', values: retry });
  } else if (most !== undefined || increase !== undefined) {
    retryPlan(job, { ...plan, command: 'retry_request_memory_max', values: most, increase });
  }
}

function setDisk(job: JobMaker): void {
  const text = wanted(job, { command: 'request_disk', attribute: 'RequestDisk', standard: DEFAULTS.disk });
  if (text === undefined) return;
  const size = sizeOf(text, KB, ',');
  if (!size) return job.setExpr('RequestDisk', text, 'request_disk', `${SIZE} KB.`);
  job.setInt('RequestDisk', size.value);
  const plan = { attribute: 'RequestDisk', base: KB, command: 'request_disk' };
  if (size.rest.length > 1) return retryPlan(job, { ...plan, values: size.rest.slice(1) });
  const retry = job.param('retry_request_disk');
  if (retry !== undefined) retryPlan(job, { ...plan, values: retry });
}

/** A resource with a name of the user's choice: `request_foo = 2` gives Requestfoo. */
function setCustom(job: JobMaker, command: string, resource: string): void {
  const text = job.param(command);
  if (text === undefined) {
    throw job.fault(command, `${command} has no value`, [`Write an amount, as in ${command} = 1.`]);
  }
  job.setExpr(`Request${resource}`, text, command);
  if (job.draft.literalNumber(`Request${resource}`) === 0) return;
  if (job.kind.universe === UNIVERSE.vanilla && job.gridType === '') return;
  job.warn(`${command} has no effect. ${resource} is not requested from sites: use batch_extra_submit_args.`, command);
}

/** Likely misspellings, with the intended name. */
const SLIPS: Readonly<Record<string, string>> = { request_cpu: 'request_cpus', request_gpu: 'request_gpus' };
const REFUSED = new Set(['request_gpu_memory', 'request_gpus_memory']);
const KNOWN = new Set(['request_cpus', 'request_memory', 'request_disk', 'request_gpus']);

function customSteps(macros: MacroTable): Step[] {
  return macros.all().flatMap(({ name }): Step[] => {
    const key = name.toLowerCase();
    if (!key.startsWith('request_') || KNOWN.has(key) || REFUSED.has(key)) return [];
    const resource = name.slice('request_'.length);
    const meant = SLIPS[key];
    if (meant !== undefined) {
      const text = `${name} is not a valid submit keyword, did you mean ${meant}?`;
      return [{ name: key, run: (job) => job.warn(text, name) }];
    }
    if (resource.length < 2 || resource.startsWith('_')) return [];
    return [{ name: key, run: (job) => setCustom(job, name, resource) }];
  });
}

/** request_cpus, request_memory, request_disk, request_gpus, and resources with names of the user's choice. */
export function resourceSteps(macros: MacroTable): Step[] {
  return [
    ...customSteps(macros),
    { name: 'request_cpus', run: setCpus },
    { name: 'request_gpus', run: setGpus },
    { name: 'request_disk', run: setDisk },
    { name: 'request_memory', run: setMemory },
  ];
}
