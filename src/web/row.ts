import type { JobView } from '../index.ts';
import type { JobId } from '../job/ids.ts';
import { LIFE, type State } from '../job/life.ts';
import { readNumber, readString } from '../job/values.ts';

/** One line of the table of jobs. Times are in Unix seconds. */
export interface Row {
  readonly id: JobId;
  state: State;
  owner: string;
  batch: string;
  command: string;
  site: string;
  host: string;
  node: string;
  submitted: number;
  /** When the current run started. */
  started: number | undefined;
  /** Since when it is in this status. */
  since: number;
  /** Seconds of all its former runs. */
  ran: number;
  prio: number;
  /** MB. */
  memory: number | undefined;
  cpus: number;
  runs: number;
  hold: string;
  exit: string;
}

/** Attributes of which a row is made; an event that changes none of them changes no row. */
export const ROW_ATTRIBUTES = [
  'Owner',
  'JobBatchName',
  'Cmd',
  'Args',
  'Arguments',
  'GryphusSite',
  'RemoteHost',
  'LastRemoteHost',
  'DAGNodeName',
  'QDate',
  'JobCurrentStartDate',
  'EnteredCurrentStatus',
  'RemoteWallClockTime',
  'JobPrio',
  'MemoryUsage',
  'RequestCpus',
  'NumJobStarts',
  'HoldReason',
  'HoldReasonCode',
  'ExitCode',
  'ExitBySignal',
  'ExitSignal',
] as const;

/** Longer texts are cut: a row is one line. Characters. */
const LONGEST = 400;

type Texts = Readonly<Record<string, string | null | undefined>>;

export function rowOf({ id, state, ad }: JobView): Row {
  const source = { get: (name: string) => ad[name] };
  const text = (name: string) => (readString(source, name) ?? '').slice(0, LONGEST);
  const number = (name: string) => readNumber(source, name);
  const args = (ad['Arguments'] === undefined ? text('Args') : text('Arguments')).trim();
  const signal = ad['ExitBySignal']?.toLowerCase() === 'true';
  const exit = number(signal ? 'ExitSignal' : 'ExitCode');
  return {
    id,
    state,
    owner: text('Owner'),
    batch: text('JobBatchName'),
    command: `${text('Cmd').split('/').at(-1) ?? ''} ${args}`.trim().slice(0, LONGEST),
    site: text('GryphusSite'),
    host: text('RemoteHost') || text('LastRemoteHost'),
    node: text('DAGNodeName'),
    submitted: number('QDate') ?? 0,
    started: LIFE[state].shows === 'running' ? number('JobCurrentStartDate') : undefined,
    since: number('EnteredCurrentStatus') ?? 0,
    ran: number('RemoteWallClockTime') ?? 0,
    prio: number('JobPrio') ?? 0,
    memory: number('MemoryUsage'),
    cpus: number('RequestCpus') ?? 1,
    runs: number('NumJobStarts') ?? 0,
    hold: LIFE[state].shows === 'held' ? text('HoldReason') : '',
    exit: exit === undefined ? '' : signal ? `signal ${exit}` : String(exit),
  };
}

const READ = new Set(ROW_ATTRIBUTES.map((name) => name.toLowerCase()));

/** Whether a change of these attributes can change a row. */
export function touchesRow(set: Texts): boolean {
  return Object.keys(set).some((name) => READ.has(name.toLowerCase()));
}

/** What a word of the filter is sought in, in lower case. */
export function haystack(row: Row): string {
  const { id, owner, batch, command, site, host, node, hold, state } = row;
  const parts = [`${id.cluster}.${id.proc}`, owner, batch, command, site, host, node, LIFE[state].shows, state, hold];
  return parts.join('\n').toLowerCase();
}
