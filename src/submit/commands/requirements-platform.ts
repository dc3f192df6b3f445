import type { Mentioned } from '../expressions.ts';
import type { JobMaker } from '../maker.ts';
import { imageType } from './executable.ts';
import { UNIVERSE } from '../../job/universe.ts';

const OPSYS = ['OpSys', 'OpSysAndVer', 'OpSysLongName', 'OpSysShortName', 'OpSysName', 'OpSysLegacy'];
/** Networks available in every docker. */
const PLAIN_NETWORKS = ['host', 'none', 'nat'];

function arch(job: JobMaker, spoken: Mentioned): string[] {
  return spoken.of('Arch') ? [] : [`(TARGET.Arch == "${job.scope.machine.arch}")`];
}

function vmClauses(job: JobMaker, spoken: Mentioned): string[] {
  const clauses: readonly (readonly [attribute: string, clause: string])[] = [
    ['HasVM', '(TARGET.HasVM =?= true)'],
    ['VM_Type', '(TARGET.VM_Type == MY.JobVMType)'],
    ['VM_AvailNum', '(TARGET.VM_AvailNum > 0)'],
  ];
  const macs =
    '((MY.VM_CkptMac =?= UNDEFINED) || (TARGET.VM_All_Guest_Macs =?= UNDEFINED) || ' +
    '(stringListIMember(MY.VM_CkptMac, TARGET.VM_All_Guest_Macs, ",") == FALSE))';
  return [
    ...arch(job, spoken),
    ...clauses.filter(([attribute]) => !spoken.of(attribute)).map(([, clause]) => clause),
    ...(job.draft.bool('JobVMCheckpoint') ? [macs] : []),
  ];
}

function containerClause(job: JobMaker): string | undefined {
  if (job.draft.has('DockerImage')) return 'TARGET.HasDockerURL';
  const image = job.draft.string('ContainerImage');
  if (image === undefined) return undefined;
  return { docker: 'TARGET.HasDockerURL', sif: 'TARGET.HasSIF', sandbox: 'TARGET.HasSandboxImage' }[imageType(image)];
}

function dockerNetwork(job: JobMaker): string[] {
  const network = job.draft.string('DockerNetworkType') ?? '';
  if (network === '' || PLAIN_NETWORKS.includes(network)) return [];
  return ['StringListMember(My.DockerNetworkType, TARGET.DockerNetworks)'];
}

/** Clauses for the machine's architecture and system, or for what replaces the system. */
export function platformClauses(job: JobMaker, spoken: Mentioned): string[] {
  if (job.kind.universe === UNIVERSE.java) return ['TARGET.HasJava'];
  if (job.kind.universe === UNIVERSE.vm) return vmClauses(job, spoken);
  if (job.kind.docker) return [...arch(job, spoken), 'TARGET.HasDocker', ...dockerNetwork(job)];
  if (job.kind.container) {
    const image = containerClause(job);
    return [...arch(job, spoken), 'TARGET.HasContainer', ...(image === undefined ? [] : [image])];
  }
  const opsys = OPSYS.some((name) => spoken.of(name)) ? [] : [`(TARGET.OpSys == "${job.scope.machine.opsys}")`];
  return [...arch(job, spoken), ...opsys];
}
