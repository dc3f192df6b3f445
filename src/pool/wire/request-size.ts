import type { Resources } from '../../site/contract.ts';
import type { Size } from './wire.ts';

/** Memory (MB) and disk (KB) of a job that requests none; HTCondor's defaults are of the same order. */
const MEMORY_MB = 128;
const DISK_KB = 1024;

export function sizeOf({ cpus, memoryMb, diskKb, gpus }: Omit<Resources, 'walltimeSeconds'>): Size {
  return { cpus, memoryMb: memoryMb ?? MEMORY_MB, diskKb: diskKb ?? DISK_KB, gpus: gpus ?? 0 };
}
