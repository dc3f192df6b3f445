import { UNIVERSE } from '../../job/universe.ts';
import type { JobMaker, Step } from '../maker.ts';

const NAMES = [
  'Standard',
  'Pipe',
  'Linda',
  'PVM',
  'Vanilla',
  'PVMD',
  'Scheduler',
  'MPI',
  'Grid',
  'Java',
  'Parallel',
  'Local',
  'VM',
];
const SUPPORTED: ReadonlySet<number> = new Set(Object.values(UNIVERSE));

/** Universes whose files HTCondor may transfer. */
export function mightTransfer(universe: number): boolean {
  return [UNIVERSE.vanilla, UNIVERSE.mpi, UNIVERSE.parallel, UNIVERSE.java, UNIVERSE.vm].some((u) => u === universe);
}

/** Universes whose jobs survive a lost connection for the length of a lease. */
export function canReconnect(universe: number): boolean {
  return [UNIVERSE.vanilla, UNIVERSE.java, UNIVERSE.parallel, UNIVERSE.vm].some((u) => u === universe);
}

function universeNumber(text: string): number | undefined {
  const leading = Number(/^\s*[+-]?\d+/.exec(text)?.[0] ?? 0);
  if (leading !== 0) return leading;
  const word = text.toLowerCase();
  if (word === 'docker' || word === 'container') return UNIVERSE.vanilla;
  const at = NAMES.findIndex((name) => name.toLowerCase() === word);
  return at < 0 ? undefined : at + 1;
}

function choose(job: JobMaker, text: string): number {
  const number = universeNumber(text);
  if (number !== undefined && SUPPORTED.has(number)) return number;
  const remedy = ['Use vanilla, java, grid, parallel, local or scheduler.'];
  if (number === undefined)
    throw job.fault('universe', `I don't know about the '${text}' universe.`, remedy, 'JobUniverse');
  throw job.fault(
    'universe',
    `'${NAMES[number - 1] ?? 'Unknown'}' is not a supported universe.`,
    remedy,
    'JobUniverse',
  );
}

function chooseImage(job: JobMaker): void {
  const { kind } = job;
  if (kind.universe !== UNIVERSE.vanilla && kind.universe !== UNIVERSE.local) return;
  const container = job.param('container_image', 'ContainerImage');
  if (kind.docker) {
    if (container !== undefined)
      throw job.fault('container_image', 'docker universe does not allow use of container_image.');
    return;
  }
  const docker = job.param('docker_image', 'DockerImage');
  if (docker !== undefined && container !== undefined) {
    throw job.fault('docker_image', 'cannot declare both docker_image and container_image');
  }
  if (docker === undefined && container === undefined) return;
  kind.container = true;
  if (docker !== undefined) job.setBool('WantDockerImage', true);
}

function setRemoteUniverses(job: JobMaker): void {
  for (const prefix of ['Remote_', 'Remote_Remote_']) {
    const text = job.param(`${prefix}universe`, `${prefix}JobUniverse`);
    if (text === undefined) continue;
    const number = universeNumber(text);
    if (number === undefined) throw job.fault(`${prefix}universe`, `Unknown ${prefix}Universe of '${text}' specified`);
    job.setInt(`${prefix}JobUniverse`, number);
  }
}

function gridTypeOf(resource: string): string {
  return resource.split(' ')[0] ?? '';
}

const GRID_TYPES = ['blah', 'batch', 'pbs', 'sge', 'lsf', 'nqs', 'naregi', 'condor', 'arc', 'ec2', 'gce', 'azure'];

function chooseGridType(job: JobMaker): void {
  const resource = job.param('grid_resource', 'GridResource') ?? job.draft.string('GridResource');
  if (resource === undefined) {
    if (job.scope.policy.broker) return;
    throw job.fault('grid_resource', 'grid_resource attribute not defined for grid universe job', [
      "Name a site, as in 'grid_resource = batch slurm cluster1'.",
    ]);
  }
  const type = gridTypeOf(resource);
  const known = [...GRID_TYPES, ...job.scope.policy.gridTypes];
  if (type !== '' && !known.includes(type.toLowerCase())) {
    throw job.fault(
      'grid_resource',
      `Invalid value '${type}' for grid type. Must be one of: condor, batch, arc, ec2, gce, or azure`,
      ["A batch system's name comes after 'batch', as in 'grid_resource = batch slurm cluster1'."],
      'GridResource',
    );
  }
  job.gridType = type.toLowerCase();
}

/** Every job of a cluster has the universe of the first. */
export const universe: Step = {
  name: 'universe',
  run(job) {
    if (!job.first) return;
    const text = job.param('universe', 'JobUniverse');
    const { kind } = job;
    kind.universe = text === undefined ? UNIVERSE.vanilla : choose(job, text);
    kind.docker = text?.toLowerCase() === 'docker';
    kind.container = text?.toLowerCase() === 'container';
    chooseImage(job);
    job.setInt('JobUniverse', kind.universe);
    setRemoteUniverses(job);
    if (job.boolParam('WantParallelScheduling')) job.setBool('WantParallelScheduling', true);
    if (kind.universe === UNIVERSE.vanilla || kind.universe === UNIVERSE.local) {
      if (kind.docker) job.setBool('WantDocker', true);
      if (kind.container) job.setBool('WantContainer', true);
    }
    if (kind.universe === UNIVERSE.grid || wantsSite(job)) chooseGridType(job);
    if (kind.universe === UNIVERSE.vm) setVmTransfer(job);
    job.scope.macros.setDefault('node', nodeName(job));
  },
};

/** A parallel or a Java job that names a site. */
function wantsSite(job: JobMaker): boolean {
  const { universe: number } = job.kind;
  if (number === UNIVERSE.mpi) {
    job.warn('universe = mpi is an older name of the parallel universe: write universe = parallel.', 'universe');
  }
  const elsewhere = [UNIVERSE.parallel, UNIVERSE.mpi, UNIVERSE.java].some((one) => one === number);
  return elsewhere && job.param('grid_resource', 'GridResource') !== undefined;
}

/** The value of `$(Node)`: at a site, the program starts on the first machine only. */
function nodeName(job: JobMaker): string {
  const name = { [UNIVERSE.parallel]: '#pArAlLeLnOdE#', [UNIVERSE.mpi]: '#MpInOdE#' }[job.kind.universe];
  return name === undefined ? '' : job.gridType === '' ? name : '0';
}

/** A VM's files are always transferred. */
function setVmTransfer(job: JobMaker): void {
  const { macros } = job.scope;
  const checkpoint = job.boolParam('vm_checkpoint', 'JobVMCheckpoint') ?? false;
  const when = (job.param('WhenToTransferOutput', 'when_to_transfer_output') ?? '').toUpperCase();
  if (
    checkpoint &&
    job.boolParam('vm_networking', 'JobVMNetworking') &&
    when !== 'ON_EXIT_OR_EVICT' &&
    when !== 'ALWAYS'
  ) {
    throw job.fault(
      'vm_networking',
      'You explicitly requested both VM checkpoint and VM networking, which conflict. If you still want to use both, you ' +
        'explicitly must define "when_to_transfer_output = ON_EXIT_OR_EVICT"',
    );
  }
  macros.define('ShouldTransferFiles', 'YES', job.place, 'internal');
  macros.define('WhenToTransferOutput', checkpoint ? 'ON_EXIT_OR_EVICT' : 'ON_EXIT', job.place, 'internal');
}
