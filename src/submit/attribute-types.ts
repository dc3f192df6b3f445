import { CATALOGUE } from './catalogue.ts';

const STRING_KINDS: ReadonlySet<string> = new Set(['string', 'unquoted', 'list', 'path', 'unquoted-path']);

/** Attributes of a job that only make sense as strings. Lower case. */
export const STRING_ATTRIBUTES: ReadonlySet<string> = new Set(
  [
    ...CATALOGUE.flatMap(({ kind = '', attribute = '' }) => (STRING_KINDS.has(kind) ? [attribute] : [])),
    ...`AccountingGroup AcctGroup AcctGroupUser Args Arguments BatchExtraSubmitArgs BatchProject BatchQueue Cmd ContainerImage
      DockerImage Env Environment Err GlobusRSL GridResource HoldKillSig In Iwd KillSig Out ProjectName RemoveKillSig
      ShouldTransferFiles TransferInput TransferOutput TransferOutputRemaps WhenToTransferOutput x509userproxy`.split(
      /\s+/,
    ),
  ].map((name) => name.toLowerCase()),
);

/** Attributes that make no sense as strings: a number, or an expression that yields one. Lower case. */
export const NUMBER_ATTRIBUTES: ReadonlySet<string> = new Set(
  `BatchRuntime JobLeaseDuration JobMaxRetries JobPrio JobUniverse MaxJobRetirementTime RequestCpus RequestDisk RequestGPUs
    RequestMemory`
    .toLowerCase()
    .split(/\s+/),
);
