/** By which CUDA, OpenCL and ROCm let a program see only some GPUs. */
const VISIBLE = ['CUDA_VISIBLE_DEVICES', 'GPU_DEVICE_ORDINAL', 'ROCR_VISIBLE_DEVICES'] as const;
/** HTCondor's ENVIRONMENT_VALUE_FOR_UnAssignedGPUs: no machine has such a GPU. */
const NO_GPU = '10000';

/** The worker's GPUs: those that the batch system or whoever started the worker lists in `env`, otherwise by their numbers. */
export function gpuIds(count: number, env: NodeJS.ProcessEnv): readonly string[] {
  const listed = (env['CUDA_VISIBLE_DEVICES'] ?? '')
    .split(',')
    .filter((id) => /^[\w-]+$/.test(id) && !id.startsWith('-'));
  if (listed.length >= count) return listed.slice(0, count);
  return Array.from({ length: count }, (_, i) => String(i));
}

/** The variables of a job that was given these GPUs, or none of those that there are; `undefined`: there are none. */
export function gpuVariables(ids: readonly string[] | undefined): Readonly<Record<string, string>> {
  if (ids === undefined) return {};
  const list = ids.length === 0 ? NO_GPU : ids.join(',');
  return {
    ...Object.fromEntries(VISIBLE.map((name) => [name, list])),
    ...(ids.length === 0 ? {} : { _CONDOR_AssignedGPUs: list }),
  };
}

/** Whether a job says itself which GPUs it sees. */
export function namesGpus(env: Readonly<Record<string, string>>): boolean {
  return VISIBLE.some((name) => Object.hasOwn(env, name));
}
