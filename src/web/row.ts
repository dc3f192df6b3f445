import type { AdText, JobView } from '../index.ts';
import type { JobId } from '../job/ids.ts';
import { LIFE, type State } from '../job/life.ts';
import { readNumber, readString, type TextSource } from '../job/values.ts';

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

/** Attributes of which a row is made. */
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

/**
 * Reads an attribute. Most jobs have the text of the one before: it is not read again, and they share its value. Only a literal
 * has the same value in every ad.
 */
function reader<T>(name: string, read: (source: TextSource, name: string) => T): (ad: AdText) => T | undefined {
  let last: { readonly text: string; readonly value: T } | undefined;
  return (ad) => {
    const text = ad[name];
    if (text === undefined || text === last?.text) return text === undefined ? undefined : last?.value;
    const value = read({ get: (other) => ad[other] }, name);
    if (/^(?:"[^"\\]*"|-?\d+)$/.test(text)) last = { text, value };
    return value;
  };
}

const cut = (source: TextSource, name: string) => (readString(source, name) ?? '').slice(0, LONGEST);
const READ = {
  owner: reader('Owner', cut),
  batch: reader('JobBatchName', cut),
  program: reader('Cmd', (source, name) => cut(source, name).replace(/^.*\//s, '')),
  args: reader('Args', (source, name) => cut(source, name).trim()),
  arguments: reader('Arguments', (source, name) => cut(source, name).trim()),
  site: reader('GryphusSite', cut),
  host: reader('RemoteHost', cut),
  lastHost: reader('LastRemoteHost', cut),
  node: reader('DAGNodeName', cut),
  submitted: reader('QDate', readNumber),
  started: reader('JobCurrentStartDate', readNumber),
  since: reader('EnteredCurrentStatus', readNumber),
  ran: reader('RemoteWallClockTime', readNumber),
  prio: reader('JobPrio', readNumber),
  memory: reader('MemoryUsage', readNumber),
  cpus: reader('RequestCpus', readNumber),
  runs: reader('NumJobStarts', readNumber),
  hold: reader('HoldReason', cut),
  code: reader('ExitCode', readNumber),
  signal: reader('ExitSignal', readNumber),
} as const;

export function rowOf({ id, state, ad }: JobView): Row {
  const args = (ad['Arguments'] === undefined ? READ.args(ad) : READ.arguments(ad)) ?? '';
  const program = READ.program(ad) ?? '';
  const signal = ad['ExitBySignal']?.toLowerCase() === 'true';
  const exit = signal ? READ.signal(ad) : READ.code(ad);
  const { shows } = LIFE[state];
  return {
    id,
    state,
    owner: READ.owner(ad) ?? '',
    batch: READ.batch(ad) ?? '',
    command: args === '' ? program : `${program} ${args}`.trim().slice(0, LONGEST),
    site: READ.site(ad) ?? '',
    host: READ.host(ad) || READ.lastHost(ad) || '',
    node: READ.node(ad) ?? '',
    submitted: READ.submitted(ad) ?? 0,
    started: shows === 'running' ? READ.started(ad) : undefined,
    since: READ.since(ad) ?? 0,
    ran: READ.ran(ad) ?? 0,
    prio: READ.prio(ad) ?? 0,
    memory: READ.memory(ad),
    cpus: READ.cpus(ad) ?? 1,
    runs: READ.runs(ad) ?? 0,
    hold: shows === 'held' ? (READ.hold(ad) ?? '') : '',
    exit: exit === undefined ? '' : signal ? `signal ${exit}` : String(exit),
  };
}

/** What a word of the filter is sought in, in lower case. */
export function haystack(row: Row): string {
  const { id, owner, batch, command, site, host, node, hold, state } = row;
  const parts = [`${id.cluster}.${id.proc}`, owner, batch, command, site, host, node, LIFE[state].shows, state, hold];
  return parts.join('\n').toLowerCase();
}
