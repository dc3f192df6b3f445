import type { UserLogBody } from './event.ts';
import { type Block, properties, RESOURCES } from './resource-table.ts';
import { type Fields, type Template, template } from './template.ts';

/** How one type of event is written in the log. */
export interface Shape {
  readonly number: number;
  /** The event's MyType in the JSON and XML forms. */
  readonly my: string;
  readonly lines: readonly (LineShape | Block)[];
  /** Attribute names in the JSON and XML forms, by field. */
  readonly ad: Readonly<Record<string, string>>;
  /** Attributes in these forms that appear in no line. */
  readonly also?: (fields: Fields) => Readonly<Record<string, boolean>>;
  /** Whether it reports a program's end, so that an exit code or a signal is required. */
  readonly ends?: boolean;
}

export interface LineShape {
  readonly template: Template;
  /** Whether the line may be missing. */
  readonly optional?: boolean;
  /** Whether to print an optional line that has no fields. */
  when?(fields: Fields): boolean;
}

const must = (source: string): LineShape => ({ template: template(source) });
const may = (source: string, when?: (fields: Fields) => boolean): LineShape => ({
  template: template(source),
  optional: true,
  ...(when ? { when } : {}),
});

const SPENT = [must('\t\t{runRemote%}  -  Run Remote Usage'), must('\t\t{runLocal%}  -  Run Local Usage')];
const BYTES = [must('\t{sent~}  -  Run Bytes Sent By Job'), must('\t{received~}  -  Run Bytes Received By Job')];
const ENDED = [
  may('\t(1) Normal termination (return value {exitCode#})'),
  may('\t(0) Abnormal termination (signal {signal#})'),
];
const CORE = [
  may('\t(1) Corefile in: {core}'),
  may('\t(0) No core file', (fields) => fields['signal'] !== undefined && fields['core'] === undefined),
];
const NODE = may('    DAG Node: {node}');

const SPENT_AD = {
  runRemote: 'RunRemoteUsage',
  runLocal: 'RunLocalUsage',
  sent: 'SentBytes',
  received: 'ReceivedBytes',
};
const ENDING_AD = { exitCode: 'ReturnValue', signal: 'TerminatedBySignal', core: 'CoreFile' };
const CODE_AD = { reason: 'Reason', code: 'ReasonCode', subcode: 'ReasonSubCode' };

const normally = (fields: Fields) => ({ TerminatedNormally: fields['exitCode'] !== undefined });

type Type = UserLogBody['type'];

export const SHAPES: Readonly<Record<Exclude<Type, 'other'>, Shape>> = {
  submit: {
    number: 0,
    my: 'SubmitEvent',
    lines: [must('Job submitted from host: {host}'), may('    {notes}'), may('    {userNotes}')],
    ad: { host: 'SubmitHost', notes: 'LogNotes', userNotes: 'UserNotes' },
  },
  execute: {
    number: 1,
    my: 'ExecuteEvent',
    lines: [must('Job executing on host: {host}'), may('\tSlotName: {slot}'), properties('props', '\t')],
    ad: { host: 'ExecuteHost', slot: 'SlotName', props: 'ExecuteProps' },
  },
  checkpointed: {
    number: 3,
    my: 'CheckpointedEvent',
    lines: [
      must('Job was checkpointed.'),
      must('\t{runRemote%}  -  Run Remote Usage'),
      must('\t{runLocal%}  -  Run Local Usage'),
      must('\t{sent~}  -  Run Bytes Sent By Job For Checkpoint'),
    ],
    ad: { runRemote: 'RunRemoteUsage', runLocal: 'RunLocalUsage', sent: 'SentBytes' },
  },
  requeued: {
    number: 4,
    my: 'JobEvictedEvent',
    lines: [
      must('Job was evicted.'),
      must('\t(0) Job terminated and was requeued'),
      ...SPENT,
      ...BYTES,
      ...ENDED,
      ...CORE,
      may('\t{reason}'),
      RESOURCES,
    ],
    ad: { ...SPENT_AD, ...ENDING_AD, ...CODE_AD },
    also: (fields) => ({ Checkpointed: false, TerminatedAndRequeued: true, ...normally(fields) }),
    ends: true,
  },
  evicted: {
    number: 4,
    my: 'JobEvictedEvent',
    lines: [
      // Without a code, the first line ends at the full stop.
      may('Job was evicted. Code {code#} Subcode {subcode#}'),
      may('Job was evicted.', (fields) => fields['code'] === undefined),
      may('\t({checkpointed#}) Job was checkpointed.'),
      may('\t(0) CPU times', (fields) => fields['checkpointed'] === undefined),
      ...SPENT,
      ...BYTES,
      may('\tReason: {reason}'),
      RESOURCES,
    ],
    ad: { ...SPENT_AD, ...CODE_AD },
    also: ({ checkpointed }) => ({
      Checkpointed: checkpointed === 1,
      TerminatedAndRequeued: false,
      TerminatedNormally: false,
    }),
  },
  terminated: {
    number: 5,
    my: 'JobTerminatedEvent',
    lines: [
      must('Job terminated.'),
      ...ENDED,
      ...CORE,
      ...SPENT,
      must('\t\t{totalRemote%}  -  Total Remote Usage'),
      must('\t\t{totalLocal%}  -  Total Local Usage'),
      ...BYTES,
      must('\t{totalSent~}  -  Total Bytes Sent By Job'),
      must('\t{totalReceived~}  -  Total Bytes Received By Job'),
      RESOURCES,
    ],
    ad: {
      ...SPENT_AD,
      ...ENDING_AD,
      totalRemote: 'TotalRemoteUsage',
      totalLocal: 'TotalLocalUsage',
      totalSent: 'TotalSentBytes',
      totalReceived: 'TotalReceivedBytes',
    },
    also: normally,
    ends: true,
  },
  'image-size': {
    number: 6,
    my: 'JobImageSizeEvent',
    lines: [
      must('Image size of job updated: {sizeKb#}'),
      may('\t{memoryMb#}  -  MemoryUsage of job (MB)'),
      may('\t{residentKb#}  -  ResidentSetSize of job (KB)'),
      may('\t{proportionalKb#}  -  ProportionalSetSize of job (KB)'),
    ],
    ad: {
      sizeKb: 'Size',
      memoryMb: 'MemoryUsage',
      residentKb: 'ResidentSetSize',
      proportionalKb: 'ProportionalSetSize',
    },
  },
  'shadow-exception': {
    number: 7,
    my: 'ShadowExceptionEvent',
    lines: [must('Shadow exception!'), must('\t{message}'), ...BYTES],
    ad: { message: 'Message', sent: 'SentBytes', received: 'ReceivedBytes' },
  },
  generic: { number: 8, my: 'GenericEvent', lines: [must('{text}')], ad: { text: 'Info' } },
  aborted: {
    number: 9,
    my: 'JobAbortedEvent',
    lines: [must('Job was aborted.'), may('\t{reason}')],
    ad: { reason: 'Reason' },
  },
  suspended: {
    number: 10,
    my: 'JobSuspendedEvent',
    lines: [must('Job was suspended.'), must('\tNumber of processes actually suspended: {processes#}')],
    ad: { processes: 'NumberOfPIDs' },
  },
  unsuspended: { number: 11, my: 'JobUnsuspendedEvent', lines: [must('Job was unsuspended.')], ad: {} },
  held: {
    number: 12,
    my: 'JobHeldEvent',
    lines: [must('Job was held.'), must('\t{reason}'), must('\tCode {code#} Subcode {subcode#}')],
    ad: { reason: 'HoldReason', code: 'HoldReasonCode', subcode: 'HoldReasonSubCode' },
  },
  released: {
    number: 13,
    my: 'JobReleaseEvent',
    lines: [must('Job was released.'), may('\t{reason}')],
    ad: { reason: 'Reason' },
  },
  'node-execute': {
    number: 14,
    my: 'NodeExecuteEvent',
    lines: [must('Node {node#} executing on host: {host}'), may('\tSlotName: {slot}'), properties('props', '\t')],
    ad: { node: 'Node', host: 'ExecuteHost', slot: 'SlotName', props: 'ExecuteProps' },
  },
  'node-terminated': {
    number: 15,
    my: 'NodeTerminatedEvent',
    lines: [
      must('Node {node#} terminated.'),
      ...ENDED,
      ...CORE,
      ...SPENT,
      must('\t\t{totalRemote%}  -  Total Remote Usage'),
      must('\t\t{totalLocal%}  -  Total Local Usage'),
      must('\t{sent~}  -  Run Bytes Sent By Node'),
      must('\t{received~}  -  Run Bytes Received By Node'),
      must('\t{totalSent~}  -  Total Bytes Sent By Node'),
      must('\t{totalReceived~}  -  Total Bytes Received By Node'),
    ],
    ad: {
      ...SPENT_AD,
      ...ENDING_AD,
      node: 'Node',
      totalRemote: 'TotalRemoteUsage',
      totalLocal: 'TotalLocalUsage',
      totalSent: 'TotalSentBytes',
      totalReceived: 'TotalReceivedBytes',
    },
    also: normally,
    ends: true,
  },
  'post-script': {
    number: 16,
    my: 'PostScriptTerminatedEvent',
    lines: [must('POST Script terminated.'), ...ENDED, NODE],
    ad: { ...ENDING_AD, node: 'DAGNodeName' },
    also: normally,
    ends: true,
  },
  'remote-error': {
    number: 21,
    my: 'RemoteErrorEvent',
    lines: [must('Error from {daemon} on {host}:'), must('\t{message}'), may('\tCode {code#} Subcode {subcode#}')],
    ad: {
      daemon: 'Daemon',
      host: 'ExecuteHost',
      message: 'ErrorMsg',
      code: 'HoldReasonCode',
      subcode: 'HoldReasonSubCode',
    },
  },
  disconnected: {
    number: 22,
    my: 'JobDisconnectedEvent',
    lines: [
      must('Job disconnected, attempting to reconnect'),
      must('    {reason}'),
      must('    Trying to reconnect to {host} {address!}'),
    ],
    ad: { reason: 'DisconnectReason', host: 'StartdName', address: 'StartdAddr' },
  },
  reconnected: {
    number: 23,
    my: 'JobReconnectedEvent',
    lines: [
      must('Job reconnected to {host}'),
      must('    startd address: {address}'),
      must('    starter address: {starter}'),
    ],
    ad: { host: 'StartdName', address: 'StartdAddr', starter: 'StarterAddr' },
  },
  'reconnect-failed': {
    number: 24,
    my: 'JobReconnectFailedEvent',
    lines: [
      must('Job reconnection failed'),
      must('    {reason}'),
      must('    Can not reconnect to {host}, rescheduling job'),
    ],
    ad: { reason: 'Reason', host: 'StartdName' },
  },
  'resource-up': {
    number: 25,
    my: 'GridResourceUpEvent',
    lines: [must('Grid Resource Back Up'), must('    GridResource: {resource}')],
    ad: { resource: 'GridResource' },
  },
  'resource-down': {
    number: 26,
    my: 'GridResourceDownEvent',
    lines: [must('Detected Down Grid Resource'), must('    GridResource: {resource}')],
    ad: { resource: 'GridResource' },
  },
  'grid-submit': {
    number: 27,
    my: 'GridSubmitEvent',
    lines: [
      must('Job submitted to grid resource'),
      must('    GridResource: {resource}'),
      must('    GridJobId: {gridJobId}'),
    ],
    ad: { resource: 'GridResource', gridJobId: 'GridJobId' },
  },
  'ad-information': {
    number: 28,
    my: 'JobAdInformationEvent',
    lines: [must('Job ad information event triggered.'), properties('ad', '')],
    ad: { ad: 'JobAd' },
  },
  'status-unknown': {
    number: 29,
    my: 'JobStatusUnknownEvent',
    lines: [must("The job's remote status is unknown")],
    ad: {},
  },
  'status-known': {
    number: 30,
    my: 'JobStatusKnownEvent',
    lines: [must("The job's remote status is known again")],
    ad: {},
  },
  'stage-in': { number: 31, my: 'JobStageInEvent', lines: [must('Job is performing stage-in of input files')], ad: {} },
  'stage-out': {
    number: 32,
    my: 'JobStageOutEvent',
    lines: [must('Job is performing stage-out of output files')],
    ad: {},
  },
  'attribute-changed': {
    number: 33,
    my: 'AttributeUpdateEvent',
    lines: [must('Changing job attribute {name!} from {from} to {to}')],
    ad: { name: 'Attribute', from: 'OldValue', to: 'Value' },
  },
  'attribute-set': {
    number: 33,
    my: 'AttributeUpdateEvent',
    lines: [must('Setting job attribute {name!} to {to}')],
    ad: { name: 'Attribute', to: 'Value' },
  },
  'pre-skip': {
    number: 34,
    my: 'PreSkipEvent',
    lines: [must('PRE script return value is PRE_SKIP value'), must('    DAG Node: {node}')],
    ad: { node: 'SkipEventLogNotes' },
  },
  'cluster-submit': {
    number: 35,
    my: 'ClusterSubmitEvent',
    lines: [must('Cluster submitted from host: {host}'), may('    {notes}')],
    ad: { host: 'SubmitHost', notes: 'LogNotes' },
  },
  'cluster-remove': {
    number: 36,
    my: 'ClusterRemoveEvent',
    lines: [must('Cluster removed'), must('\tMaterialized {materialized#} jobs from {items#} items.'), must('\t{end}')],
    ad: { materialized: 'NextProcId', items: 'NextRow', end: 'Completion' },
  },
  'factory-paused': {
    number: 37,
    my: 'FactoryPausedEvent',
    lines: [must('Job Materialization Paused'), must('\t{reason}'), must('\tPauseCode {code#}')],
    ad: { reason: 'Reason', code: 'PauseCode' },
  },
  'factory-resumed': {
    number: 38,
    my: 'FactoryResumedEvent',
    lines: [must('Job Materialization Resumed'), must('\t{reason}')],
    ad: { reason: 'Reason' },
  },
  'file-transfer': {
    number: 40,
    my: 'FileTransferEvent',
    lines: [must('{phase}'), may('\tSeconds spent in queue: {queuedSeconds#}'), may('\tTransferring to host: {host}')],
    ad: { phase: 'Type', queuedSeconds: 'QueueingDelay', host: 'Host' },
  },
};
