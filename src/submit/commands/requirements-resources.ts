import { isInt, Real } from '../../classad/api.ts';
import type { Mentioned } from '../expressions.ts';
import type { JobMaker } from '../maker.ts';
import { byBytes } from '../text.ts';
import { UNIVERSE } from '../../job/universe.ts';

const DISK = '(TARGET.Disk >= RequestDisk)';

function diskClauses(job: JobMaker, spoken: Mentioned): string[] {
  const vm = job.kind.universe === UNIVERSE.vm;
  const asked = job.draft.has('RequestDisk');
  if (spoken.of('Disk')) {
    if (vm) return [];
    job.warn(
      'Your Requirements expression refers to TARGET.Disk. This is obsolete. Set request_disk and gryphus submit will ' +
        'modify the Requirements expression as needed.',
      'requirements',
    );
    return asked ? [DISK] : [];
  }
  if (!asked) return [vm ? '(TARGET.TotalDisk >= DiskUsage)' : '(TARGET.Disk >= DiskUsage)'];
  if ((job.draft.literalNumber('RequestDisk') ?? 1) <= 0) return [];
  if (job.kind.universe !== UNIVERSE.vanilla) return [DISK];
  return [`(versionGE(split(TARGET.CondorVersion)[1], "25.12.0") || ${DISK})`];
}

function vmMemoryClauses(job: JobMaker, spoken: Mentioned): string[] {
  const xen = job.draft.string('JobVMType')?.toLowerCase() === 'xen';
  const networking = job.draft.bool('JobVMNetworking') === true;
  return [
    ...(xen ? [] : ['(TARGET.TotalMemory >= MY.JobVMMemory)']),
    ...(spoken.of('VM_Memory') ? [] : ['(TARGET.VM_Memory >= MY.JobVMMemory)']),
    ...(job.draft.bool('JobVMHardwareVT') && !spoken.of('VM_HardwareVT') ? ['TARGET.VM_HardwareVT'] : []),
    ...(networking && !spoken.of('VM_Networking') ? ['TARGET.VM_Networking'] : []),
    ...(networking && job.draft.has('JobVMNetworkingType')
      ? ['stringListIMember(JobVMNetworkingType,TARGET.VM_Networking_Types,",")']
      : []),
  ];
}

function memoryClauses(job: JobMaker, spoken: Mentioned): string[] {
  if (spoken.of('Memory')) {
    job.warn(
      'your Requirements expression refers to TARGET.Memory. This is obsolete. Set request_memory and gryphus submit will ' +
        'modify the Requirements expression as needed.',
      'requirements',
    );
  }
  const asked = job.draft.has('RequestMemory') && (job.draft.literalNumber('RequestMemory') ?? 2) > 1;
  return asked ? ['(TARGET.Memory >= RequestMemory)'] : [];
}

function cpuClauses(job: JobMaker, spoken: Mentioned): string[] {
  if (job.kind.universe === UNIVERSE.grid || spoken.of('Cpus') || !job.draft.has('RequestCpus')) return [];
  return (job.draft.literalNumber('RequestCpus') ?? 2) > 1 ? ['(TARGET.Cpus >= RequestCpus)'] : [];
}

function customClause(job: JobMaker, attribute: string): string | undefined {
  const tag = attribute.slice('Request'.length);
  const value = job.draft.value(attribute);
  if (typeof value === 'string') return value === '' ? undefined : `regexp(${attribute}, TARGET.${tag})`;
  const number = isInt(value) ? Number(value) : value instanceof Real ? value.value : undefined;
  if (value !== undefined && (number === undefined || number <= 0)) return undefined;
  if (!job.draft.has(`Require${tag}`)) return `(TARGET.${tag} >= ${attribute})`;
  return `(countMatches(MY.Require${tag},TARGET.Available${tag}) >= ${attribute})`;
}

/** GPUs and resources with names of the user's choice, sorted. */
function customClauses(job: JobMaker, spoken: Mentioned): string[] {
  return job.draft
    .names('request')
    .filter((name) => /^Request(?!_)..+/i.test(name) && !/^Request(Cpus|Disk|Memory)$/i.test(name))
    .sort((a, b) => byBytes(a.toLowerCase(), b.toLowerCase()))
    .filter((name) => !spoken.of(name.slice('Request'.length)))
    .flatMap((name) => customClause(job, name) ?? []);
}

/** A clause for each requested resource, except for constants that every machine provides. */
export function resourceClauses(job: JobMaker, spoken: Mentioned): string[] {
  const memory = job.kind.universe === UNIVERSE.vm ? vmMemoryClauses(job, spoken) : memoryClauses(job, spoken);
  return [...diskClauses(job, spoken), ...memory, ...cpuClauses(job, spoken), ...customClauses(job, spoken)];
}
