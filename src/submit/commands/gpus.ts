import { sizeOf } from '../calculate.ts';
import { referencesOf, wrapOperand } from '../expressions.ts';
import type { JobMaker, Step } from '../maker.ts';

/** A CUDA version as the ads encode it: 12 and 12.1 are 12000 and 12010. */
function runtimeVersion(text: string): number | undefined {
  const found = /^(\d+)(?:\.(\d+))?$/.exec(text);
  if (!found) return undefined;
  const major = Number(found[1]);
  const minor = found[2] === undefined ? undefined : Number(found[2]);
  if (minor === undefined) return major > 1000 ? major : major * 1000;
  return minor < 100 ? major * 1000 + minor * 10 : undefined;
}

/** What the GPUs must be capable of; only applies if the job requests any. */
export function setGpuLimits(job: JobMaker): void {
  const simple = [
    ['require_gpus', 'RequireGPUs'],
    ['gpus_minimum_capability', 'GPUsMinCapability'],
    ['gpus_maximum_capability', 'GPUsMaxCapability'],
  ] as const;
  for (const [command, attribute] of simple) {
    const text = job.param(command, attribute);
    if (text !== undefined) job.setExpr(attribute, text, command);
  }
  const memory = job.param('gpus_minimum_memory', 'GPUsMinMemory');
  if (memory !== undefined) {
    const size = sizeOf(memory, 2 ** 20);
    if (size) job.setInt('GPUsMinMemory', size.value);
    else job.setExpr('GPUsMinMemory', memory, 'gpus_minimum_memory');
  } else if (job.param('request_gpu_memory', 'request_gpus_memory') !== undefined) {
    job.warn('request_gpu_memory is not a submit command, did you mean gpus_minimum_memory?', 'request_gpu_memory');
  }
  const runtime = job.param('gpus_minimum_runtime', 'GPUsMinRuntime');
  if (runtime === undefined) return;
  const version = runtimeVersion(runtime);
  if (version === undefined) job.setExpr('GPUsMinRuntime', runtime, 'gpus_minimum_runtime');
  else job.setInt('GPUsMinRuntime', version);
}

const LIMITS: readonly (readonly [attribute: string, property: string, comparison: string])[] = [
  ['GPUsMinCapability', 'Capability', '>='],
  ['GPUsMaxCapability', 'Capability', '<='],
  ['GPUsMinMemory', 'GlobalMemoryMb', '>='],
  ['GPUsMinRuntime', 'MaxSupportedVersion', '>='],
];
const PROPERTIES = ['Capability', 'GlobalMemoryMb', 'DriverVersion', 'MaxSupportedVersion'];

/** The limits as clauses of RequireGPUs, unless it already refers to the property. */
export const gpuRequirements: Step = {
  name: 'require_gpus',
  run(job) {
    const { draft } = job;
    if (!draft.has('RequestGPUs')) return;
    const required = draft.get('RequireGPUs')?.text;
    const spoken = required === undefined ? undefined : referencesOf(required, PROPERTIES)?.own;
    const clauses = LIMITS.filter(([attribute, property]) => {
      return draft.has(attribute) && spoken?.has(property.toLowerCase()) !== true;
    }).map(([attribute, property, comparison]) => `${property} ${comparison} ${attribute}`);
    if (clauses.length === 0) return;
    const before = required === undefined ? [] : [wrapOperand(required, '&&') ?? required];
    job.setExpr('RequireGPUs', [...before, ...clauses].join(' && '), 'require_gpus');
  },
};
