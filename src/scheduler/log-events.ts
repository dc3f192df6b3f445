import type { Attrs } from '../job/attrs.ts';
import type { Transitioned } from '../job/events.ts';
import type { JobId } from '../job/ids.ts';
import { NO_CPU, type ResourceRow, type Spent, type UserLogBody, type UserLogEvent } from '../job/user-log.ts';
import { readNumber, readString } from '../job/values.ts';

/** HTCondor's eviction codes (recorded): removed, vacated; a hold gives its own code. */
const EVICTED = { removed: 1023, vacated: 1022, held: 1 } as const;
/** JobUniverse of grid jobs. */
const GRID = 9;

/** The first line of a job's log. */
export function submitEvent(id: JobId, at: number, attrs: Attrs, host: string): UserLogEvent {
  const notes = readString(attrs, 'SubmitEventNotes');
  const userNotes = readString(attrs, 'SubmitEventUserNotes');
  return {
    ...id,
    at,
    type: 'submit',
    host: `<${host}>`,
    ...(notes === undefined ? {} : { notes }),
    ...(userNotes === undefined ? {} : { userNotes }),
  };
}

/** What a step of a job's life says in its user log: HTCondor's events, in its order (recorded event logs). */
export function logEvents(id: JobId, step: Transitioned, attrs: Attrs): UserLogEvent[] {
  return bodies(step, attrs).map((body) => ({ ...id, at: step.at, ...body }));
}

function bodies(step: Transitioned, attrs: Attrs): UserLogBody[] {
  const known = knownAgain(step, attrs);
  switch (step.event) {
    case 'committed':
    case 'granted':
      return isGrid(attrs)
        ? [{ type: 'grid-submit', resource: resource(attrs), gridJobId: text(step, attrs, 'GridJobId') }]
        : [];
    case 'started':
      if (step.from === 'suspended') return [{ type: 'unsuspended' }];
      if (step.from === 'unknown-running') return known;
      return [...known, execute(step, attrs)];
    case 'suspended':
      return [...known, { type: 'suspended', processes: 1 }];
    case 'silent':
      return [{ type: 'resource-down', resource: resource(attrs) }, { type: 'status-unknown' }];
    case 'queued':
      return known;
    case 'ended':
      // A short job can be over before the site was asked for the first time: its start is told all the same.
      return 'NumJobStarts' in step.set ? [...known, execute(step, attrs)] : known;
    case 'complete':
      return [terminated(step, attrs)];
    case 'again':
      return [{ type: 'requeued', ...spent(attrs), ...ending(attrs), ...reasonOf(step) }];
    case 'hold':
    case 'refused':
    case 'stop':
    case 'keep':
      return [...evicted(step, attrs, EVICTED.held), held(step, attrs)];
    case 'release':
      return [{ type: 'released', ...optional('reason', text(step, attrs, 'ReleaseReason')) }];
    case 'remove':
      return [
        ...evicted(step, attrs, EVICTED.removed),
        { type: 'aborted', ...optional('reason', text(step, attrs, 'RemoveReason')) },
      ];
    case 'lost':
      return [
        {
          type: 'remote-error',
          daemon: 'site',
          host: resource(attrs),
          message: 'The site lost the job before it started; it is submitted again.',
        },
      ];
    case 'takeback':
    case 'take':
    case 'prepared':
    case 'fetched':
    case 'forgotten':
    case 'withdrawn':
      return [];
  }
}

function knownAgain(step: Transitioned, attrs: Attrs): UserLogBody[] {
  if (!step.from.startsWith('unknown')) return [];
  return [{ type: 'resource-up', resource: resource(attrs) }, { type: 'status-known' }];
}

function execute(step: Transitioned, attrs: Attrs): UserLogBody {
  const host = text(step, attrs, 'RemoteHost');
  if (isGrid(attrs)) return { type: 'execute', host: resource(attrs) };
  return {
    type: 'execute',
    host: `<${host}>`,
    props: [
      ['Cpus', attrs.get('RequestCpus') ?? '1'],
      ...(/^\d+$/.test(attrs.get('RequestMemory') ?? '')
        ? [['Memory', attrs.get('RequestMemory') ?? ''] as const]
        : []),
    ],
  };
}

function terminated(step: Transitioned, attrs: Attrs): UserLogBody {
  const run = spent(attrs);
  return {
    type: 'terminated',
    ...ending(attrs),
    ...run,
    totalRemote: { user: number(attrs, 'CumulativeRemoteUserCpu'), system: number(attrs, 'CumulativeRemoteSysCpu') },
    totalLocal: NO_CPU,
    totalSent: run.sent,
    totalReceived: run.received,
    resources: resources(step, attrs),
  };
}

function resources(_step: Transitioned, attrs: Attrs): ResourceRow[] {
  const rows: ResourceRow[] = [];
  const add = (name: string, usage: number | undefined, request: number | undefined) => {
    if (usage === undefined && request === undefined) return;
    rows.push({ name, ...optional('usage', usage), ...optional('request', request) });
  };
  const wall = number(attrs, 'LastRemoteWallClockTime');
  const cpu = number(attrs, 'RemoteUserCpu') + number(attrs, 'RemoteSysCpu');
  add('Cpus', wall > 0 ? Math.round((cpu / wall) * 100) / 100 : undefined, readNumber(attrs, 'RequestCpus'));
  add('Disk', readNumber(attrs, 'DiskUsage'), readNumber(attrs, 'RequestDisk'));
  add('Memory', readNumber(attrs, 'MemoryUsage'), readNumber(attrs, 'RequestMemory'));
  add('TimeExecute', Math.round(wall), undefined);
  return rows;
}

function spent(attrs: Attrs): Spent {
  return {
    runRemote: { user: number(attrs, 'RemoteUserCpu'), system: number(attrs, 'RemoteSysCpu') },
    runLocal: NO_CPU,
    sent: number(attrs, 'BytesRecvd'),
    received: number(attrs, 'BytesSent'),
  };
}

function ending(attrs: Attrs): { exitCode: number } | { signal: number } {
  const signal = readNumber(attrs, 'ExitSignal');
  return signal === undefined ? { exitCode: number(attrs, 'ExitCode') } : { signal };
}

function evicted(step: Transitioned, attrs: Attrs, code: number): UserLogBody[] {
  if (step.from !== 'running' && step.from !== 'suspended' && step.from !== 'unknown-running') return [];
  // HTCondor says nothing of the eviction when a job's own periodic policy ends its run (recorded).
  if (step.info?.['by'] === 'policy') return [];
  const why = code === EVICTED.held ? number(attrs, 'HoldReasonCode') || EVICTED.held : code;
  return [{ type: 'evicted', ...spent(attrs), code: why, subcode: 0 }];
}

function held(step: Transitioned, attrs: Attrs): UserLogBody {
  const code = (name: string) => Number(step.set[name] ?? attrs.get(name) ?? 0) || 0;
  return {
    type: 'held',
    reason: text(step, attrs, 'HoldReason') || 'Reason unspecified',
    code: code('HoldReasonCode'),
    subcode: code('HoldReasonSubCode'),
  };
}

/** The value as of this step: a later one may have changed the ad since. */
function text(step: Transitioned, attrs: Attrs, name: string): string {
  const then = step.set[name];
  if (then === undefined) return readString(attrs, name) ?? '';
  return then === null ? '' : (readString({ get: () => then }, name) ?? '');
}

function reasonOf(step: Transitioned): { reason?: string } {
  const reason = step.info?.['reason'];
  return typeof reason === 'string' ? { reason } : {};
}

function resource(attrs: Attrs): string {
  const given = readString(attrs, 'GridResource');
  const site = readString(attrs, 'GryphusSite');
  return given ?? `batch ${site ?? 'local'}`;
}

function isGrid(attrs: Attrs): boolean {
  return readNumber(attrs, 'JobUniverse') === GRID;
}

function number(attrs: Attrs, name: string): number {
  return readNumber(attrs, name) ?? 0;
}

function optional<K extends string, V>(name: K, value: V | undefined): { [k in K]?: V } {
  return value === undefined || value === '' ? {} : ({ [name]: value } as { [k in K]: V });
}
