import type { Resources } from '../../site/contract.ts';
import type { Size } from './wire.ts';

/** What a job that does not say gets, MB and KB (HTCondor's defaults are of this order). */
const MEMORY_MB = 128;
const DISK_KB = 1024;

export function sizeOf({ cpus, memoryMb, diskKb, gpus }: Omit<Resources, 'walltimeSeconds'>): Size {
  return { cpus, memoryMb: memoryMb ?? MEMORY_MB, diskKb: diskKb ?? DISK_KB, gpus: gpus ?? 0 };
}
