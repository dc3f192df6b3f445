import type { Attrs } from './attrs.ts';
import type { Edited, Transitioned } from './events.ts';
import type { JobId } from './ids.ts';
import { resourcesOf, spentInAllOf, spentOf } from './log-usage.ts';
import { NODE_ENDINGS, parseNodeEndings } from './node-endings.ts';
import { NO_CPU, type UserLogBody, type UserLogEvent } from '../user-log/event.ts';
import { UNIVERSE } from './universe.ts';
import { readNumber, readString } from './values.ts';

/** HTCondor's eviction codes (recorded): removed, vacated; a hold gives its own code. */
const EVICTED = { removed: 1023, vacated: 1022, held: 1 } as const;

/** The first event in a job's log. */
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

/** The user log events for a step in a job's life: HTCondor's events, in its order (from recorded event logs). */
export function logEvents(id: JobId, step: Transitioned, attrs: Attrs): UserLogEvent[] {
  return bodies(step, attrs).map((body) => ({ ...id, at: step.at, ...body }));
}

/** Whether an edit of a job's attributes is also an event of its log. */
export function isLogged({ info }: Edited): boolean {
  return info !== undefined && ('ulog' in info || 'checkpointed' in info);
}

/** What a running job wrote into its log itself (condor_chirp ulog), and its checkpoints. */
export function runningEvents(id: JobId, { at, info }: Edited): UserLogEvent[] {
  const text = info?.['ulog'];
  if (typeof text === 'string') return [{ ...id, at, type: 'generic', text }];
  const used = info?.['checkpointed'];
  if (typeof used !== 'object' || used === null || !('user' in used)) return [];
  const runRemote = { user: Number(used['user']), system: Number(used['system']) };
  return [{ ...id, at, type: 'checkpointed', runRemote, runLocal: NO_CPU, sent: 0 }];
}

type Body = UserLogBody & { at?: number; subproc?: number };

function bodies(step: Transitioned, attrs: Attrs): Body[] {
  const known = knownAgain(step, attrs);
  switch (step.event) {
    case 'committed':
    case 'granted':
    case 'adopted':
      return isGrid(attrs)
        ? [{ type: 'grid-submit', resource: resource(attrs), gridJobId: text(step, attrs, 'GridJobId') }]
        : transferred(step, attrs, 'In');
    case 'started':
      if (step.from === 'suspended') return [{ type: 'unsuspended' }];
      if (step.from === 'unknown-running') return known;
      return [...known, ...executes(step, attrs)];
    case 'suspended':
      return [...known, { type: 'suspended', processes: 1 }];
    case 'silent':
      return [{ type: 'resource-down', resource: resource(attrs) }, { type: 'status-unknown' }];
    case 'queued':
      return step.info?.['by'] === 'eviction' ? [...known, moved(step, attrs)] : known;
    case 'ended':
      // A short job may end before the first poll of the site; its start is logged anyway.
      return [...known, ...('NumJobStarts' in step.set ? executes(step, attrs) : []), ...imageSize(step, attrs)];
    case 'prepared':
      return transferred(step, attrs, 'In');
    case 'fetched':
      return transferred(step, attrs, 'Out');
    case 'complete':
      return [...nodesTerminated(attrs), terminated(attrs)];
    case 'again':
      if (step.info?.['by'] === 'checkpoint') return [];
      if (step.info?.['by'] === 'eviction') return [moved(step, attrs)];
      return [{ type: 'requeued', ...spentOf(attrs), ...ending(attrs), ...reasonOf(step) }];
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
    case 'forgotten':
    case 'withdrawn':
      return [];
  }
}

function knownAgain(step: Transitioned, attrs: Attrs): UserLogBody[] {
  if (!step.from.startsWith('unknown')) return [];
  return [{ type: 'resource-up', resource: resource(attrs) }, { type: 'status-known' }];
}

/** As in HTCondor, a parallel job of the pool has an event for each node, then one for the whole (recorded). */
function executes(step: Transitioned, attrs: Attrs): Body[] {
  const slots = text(step, attrs, 'RemoteHosts');
  if (!isParallel(attrs) || slots === '') return [execute(step, attrs)];
  const nodes = slots.split(',').map((slot, node): Body => {
    const host = `<${/^slot[\d_]+@(.*)$/s.exec(slot)?.[1] ?? slot}>`;
    return { type: 'node-execute', subproc: node, node, host, slot, props: granted(attrs, true) };
  });
  return [...nodes, { type: 'execute', host: 'MPI_job' }];
}

/** Of the nodes that ended by themselves: those that ended with their job have none in HTCondor either (recorded). */
function nodesTerminated(attrs: Attrs): Body[] {
  return parseNodeEndings(readString(attrs, NODE_ENDINGS) ?? '').map((one): Body => {
    const run = { user: one.user, system: one.system };
    return {
      type: 'node-terminated',
      subproc: one.number,
      node: one.number,
      at: one.endedAt * 1000,
      ...('exitCode' in one ? { exitCode: one.exitCode } : { signal: one.signal }),
      runRemote: run,
      runLocal: NO_CPU,
      totalRemote: run,
      totalLocal: NO_CPU,
      sent: 0,
      received: 0,
      totalSent: 0,
      totalReceived: 0,
    };
  });
}

function isParallel(attrs: Attrs): boolean {
  const universe = readNumber(attrs, 'JobUniverse');
  return universe === UNIVERSE.parallel || universe === UNIVERSE.mpi;
}

function granted(attrs: Attrs, slot: boolean): readonly (readonly [name: string, value: string])[] {
  const whole = (name: string) => {
    const value = readNumber(attrs, name);
    return value === undefined ? undefined : String(Math.ceil(value));
  };
  const rows = [
    ['Cpus', whole('RequestCpus') ?? '1'],
    ['Disk', slot ? whole('RequestDisk') : undefined],
    ['Memory', whole('RequestMemory')],
  ] as const;
  return rows.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]));
}

function execute(step: Transitioned, attrs: Attrs): UserLogBody {
  const host = text(step, attrs, 'RemoteHost');
  if (isGrid(attrs)) return { type: 'execute', host: resource(attrs) };
  const slot = /^slot[\d_]+@(.*)$/s.exec(host);
  return {
    type: 'execute',
    host: `<${slot?.[1] ?? host}>`,
    ...(slot ? { slot: host } : {}),
    props: granted(attrs, slot !== null),
  };
}

function terminated(attrs: Attrs): UserLogBody {
  return {
    type: 'terminated',
    ...ending(attrs),
    ...spentOf(attrs),
    ...spentInAllOf(attrs),
    resources: resourcesOf(attrs),
  };
}

/** How much memory a run used, if known. HTCondor logs this only for vanilla jobs (recorded). */
function imageSize(step: Transitioned, attrs: Attrs): UserLogBody[] {
  const resident = Number(step.set['ResidentSetSize'] ?? 0);
  if (!(resident > 0) || !isVanilla(attrs)) return [];
  return [
    {
      type: 'image-size',
      sizeKb: Math.max(resident, Math.round(number(attrs, 'ImageSize'))),
      memoryMb: Math.ceil(resident / 1024),
      residentKb: resident,
    },
  ];
}

/** For a job with its own directory at the site: its files were transferred there, or back. */
function transferred(step: Transitioned, attrs: Attrs, way: 'In' | 'Out'): (UserLogBody & { at?: number })[] {
  const [began, ended] = ['Started', 'Finished'].map((name) => step.set[`Transfer${way}${name}`]);
  if (typeof began !== 'string' || typeof ended !== 'string' || !isVanilla(attrs)) return [];
  const message = way === 'In' ? 'input' : 'output';
  const host = way === 'In' ? { host: `<${readString(attrs, 'GryphusSite') ?? 'local'}>` } : {};
  return [
    { at: Number(began) * 1000, type: 'file-transfer', phase: `Started transferring ${message} files`, ...host },
    { at: Number(ended) * 1000, type: 'file-transfer', phase: `Finished transferring ${message} files` },
  ];
}

function ending(attrs: Attrs): { exitCode: number } | { signal: number } {
  const signal = readNumber(attrs, 'ExitSignal');
  return signal === undefined ? { exitCode: number(attrs, 'ExitCode') } : { signal };
}

function evicted(step: Transitioned, attrs: Attrs, code: number): UserLogBody[] {
  if (step.from !== 'running' && step.from !== 'suspended' && step.from !== 'unknown-running') return [];
  // HTCondor logs no eviction if the job's own periodic policy ends its run (recorded).
  if (step.info?.['by'] === 'policy') return [];
  const why = code === EVICTED.held ? number(attrs, 'HoldReasonCode') || EVICTED.held : code;
  return [{ type: 'evicted', ...spentOf(attrs), code: why, subcode: 0 }];
}

/** The job was evicted and will run again. */
function moved(step: Transitioned, attrs: Attrs): UserLogBody {
  const code = { code: EVICTED.vacated, subcode: 0 };
  const saved = step.info?.['checkpointed'] === 'true' ? { checkpointed: 1 as const } : {};
  return { type: 'evicted', ...saved, ...spentOf(attrs), ...code, ...reasonOf(step), resources: resourcesOf(attrs) };
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

/** The value as of this step; the ad may have changed since. */
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

function isVanilla(attrs: Attrs): boolean {
  return readNumber(attrs, 'JobUniverse') === UNIVERSE.vanilla;
}

function isGrid(attrs: Attrs): boolean {
  return readNumber(attrs, 'JobUniverse') === UNIVERSE.grid || attrs.has('GridResource');
}

function number(attrs: Attrs, name: string): number {
  return readNumber(attrs, name) ?? 0;
}

function optional<K extends string, V>(name: K, value: V | undefined): { [k in K]?: V } {
  return value === undefined || value === '' ? {} : ({ [name]: value } as { [k in K]: V });
}
