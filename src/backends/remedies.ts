const EXTRA = 'BatchExtraSubmitArgs';

/**
 * What batch systems say about a job that they refuse or never start, what to do about it, and which of its attributes
 * ask for what was refused. The first match counts.
 */
const REMEDIES: readonly (readonly [pattern: RegExp, remedy: string, asked: readonly string[]])[] = [
  [
    /invalid partition|unknown queue|no such queue|queue "?[\w.@*-]+"? does not exist|Queue is not enabled|PartitionInactive|PartitionDown|Required partition not available|destination.*unknown|No default queue|Queue does not (accept|allow)|ACL rejected/i,
    "Name a queue that the site has: batch_queue in the submit file, or `queue` in the site's file",
    ['BatchQueue', EXTRA],
  ],
  [
    /invalid generic resource|unknown resource:? "?n?gpus?\b|gres.* not available/i,
    'Remove request_gpus if the site has none; if its GPUs have another name, ask for them with batch_extra_submit_args in the submit file',
    ['RequestGPUs', EXTRA],
  ],
  [
    /unknown resource "?exclusive\b/i,
    'Remove +WholeNodes: the site cannot allocate whole nodes that way. Request all cores of a node: request_cpus in the submit file',
    ['WholeNodes'],
  ],
  [
    /invalid qos/i,
    "Name a QOS that you may use: --qos in batch_extra_submit_args in the submit file, or `extra_args` in the site's file; or a project that has it: batch_project",
    [EXTRA, 'BatchProject'],
  ],
  [
    /invalid account|invalid project|project .*(does not exist|not allowed|no hours|exhausted)|unknown project|denied.*project|AssocGrpCPUMinutes|AssocGrpBilling|AssocGrp\w*Minutes|QOSGrp\w*Minutes|QOSNotAllowed|AccountNotAllowed|(account|QOS) not permitted|InvalidAccount|InvalidQOS|accounting_group|insufficient (funds|balance)|allocation/i,
    "Name a project that you may use there and that has hours left: batch_project in the submit file, or `project` in the site's file",
    ['BatchProject', EXTRA],
  ],
  [
    /(?<!and\/or )time ?limit|PartitionTimeLimit|MaxWall|Reserved for maintenance|walltime|h_rt|run ?limit|RUNLIMIT/i,
    'Request less time: batch_runtime in the submit file',
    ['BatchRuntime', EXTRA],
  ],
  [
    /node configuration is not available|more processors requested|PartitionNodeLimit|PartitionConfig|BadConstraints|Can Never Run|exceeds (queue|server)|violates (queue|server)|MaxCpuPer|MaxMemPer|MaxNodePer|MaxTRESPer|MaxCPUsPerJob|no suitable queues|cannot run .*because it offers only|Memory specification can not be satisfied|Too many processors|insufficient .*resource/i,
    'Request no more than one host there has, and no more machines than there are: request_cpus, request_memory, request_gpus, machine_count in the submit file',
    ['HostNumber', 'MaxHosts', 'RequestCpus', 'RequestMemory', 'RequestGPUs', 'RequestDisk', 'BatchRuntime', EXTRA],
  ],
  [
    /quota exceeded|disk full|no space left|EDQUOT/i,
    "Free some space there, or set another directory: `scratch` in the site's file",
    [],
  ],
  [
    /Setting job owner to "root" is not permitted/,
    'Log in there as an ordinary user: HTCondor accepts no jobs from root',
    [],
  ],
  [
    /reservation is invalid|requested reservation|unknown resource|bad resource requirement|unknown option|invalid option|unrecognized option|illegal option|illegal attribute|invalid (feature|licen[cs]e)|unknown user/i,
    "Correct batch_extra_submit_args in the submit file, or `extra_args` in the site's file",
    [EXTRA],
  ],
];

/** Attributes by which a job may have asked for what is refused; none if the text is about the site, or unknown. */
export function askedFor(message: string): readonly string[] {
  return REMEDIES.find(([pattern]) => pattern.test(message))?.[2] ?? [];
}

/** What a user can do about a batch system's message, without a full stop; `undefined` if unknown. */
export function remedyOf(message: string): string | undefined {
  // OpenPBS says this of a shortage that passes; for one that does not, it says `Can Never Run`.
  if (message.includes('Not Running: ')) return undefined;
  return REMEDIES.find(([pattern]) => pattern.test(message))?.[1];
}
