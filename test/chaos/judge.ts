import type { UserLogEvent } from '../../src/user-log/event.ts';
import { type Run, runName } from './ledger.ts';

/** What a chaos run recorded about one job. */
export interface Evidence {
  /** `12.0` */
  readonly id: string;
  /** True if the submit command reported it; false: the command was killed, but the job exists anyway. */
  readonly accepted: boolean;
  readonly removed: boolean;
  /** HTCondor's names; `undefined`: it is neither in the queue nor in the history. */
  readonly ad: Readonly<Record<string, unknown>> | undefined;
  /** As recorded by the programs, in order of their starts. */
  readonly runs: readonly Run[];
  readonly events: readonly UserLogEvent[];
  /** What it wrote, as it arrived at home. */
  readonly output: string | undefined;
}

export interface Seen {
  /** Programs that were killed, by `runName`; the killer sends signal 9. */
  readonly killed: ReadonlySet<string>;
  /** Jobs whose waiter or wrapper was killed: the program dies with it. */
  readonly unwatched: ReadonlySet<string>;
  /** When a program was last seen alive, in seconds of uptime, by `runName`. */
  readonly alive: ReadonlyMap<string, number>;
}

export type Fault = 'lost' | 'at-once' | 'false-end' | 'event' | 'output';

export interface Finding {
  readonly fault: Fault;
  readonly id: string;
  readonly why: string;
}

const REMOVED = 3;
const COMPLETED = 4;
/** The resolution of the uptime, plus the time from a program's line to its death, in seconds. */
const GRAIN = 0.05;

/** Everything that is wrong with a job; empty for one that ran as it should. Pure. */
export function judge(job: Evidence, seen: Seen): Finding[] {
  const found: Finding[] = [];
  const say = (fault: Fault, why: string) => found.push({ fault, id: job.id, why });
  for (const [at, run] of job.runs.entries()) {
    const next = job.runs[at + 1];
    const lived = run.end ?? seen.alive.get(runName(job.id, run.pid)) ?? run.start;
    if (next !== undefined && next.start < lived - GRAIN)
      say('at-once', `${next.pid} started at ${next.start}, ${run.pid} lived until ${lived}`);
  }
  if (job.ad === undefined) {
    if (job.accepted) say('lost', 'neither in the queue nor in the history');
    else if (job.runs.length > 0) say('lost', 'its program ran, and nothing knows it');
    return found;
  }
  const status = Number(job.ad['JobStatus']);
  if (status !== COMPLETED && status !== REMOVED) say('lost', `it never ended: JobStatus ${status}`);
  if (status === REMOVED && !job.removed) say('false-end', 'nobody removed it');
  if (status === COMPLETED) {
    for (const why of falseEnd(job, seen)) say('false-end', why);
    const last = job.runs.at(-1);
    const wanted = job.ad['Out'] !== undefined && job.ad['Out'] !== '/dev/null';
    if (wanted && last?.last !== undefined && 'code' in last.last && job.output !== `out ${job.id} ${last.pid}\n`)
      say('output', `of ${last.pid}: ${JSON.stringify(job.output)}`);
  }
  for (const why of wrongEvents(job, status)) say('event', why);
  return found;
}

/** The reported exit is that of the program's last run; a signal is one that it sent itself, or the killer's. */
function falseEnd({ id, ad = {}, runs }: Evidence, { killed, unwatched }: Seen): string[] {
  const last = runs.at(-1);
  if (last === undefined) return ['it never ran'];
  if (ad['ExitBySignal'] === true) {
    const signal = Number(ad['ExitSignal']);
    if (last.last === undefined)
      return signal === 9 && (killed.has(runName(id, last.pid)) || unwatched.has(id))
        ? []
        : [`signal ${signal}, which nobody sent`];
    return 'signal' in last.last && last.last.signal === signal
      ? []
      : [`signal ${signal}, not ${JSON.stringify(last.last)}`];
  }
  const code = Number(ad['ExitCode']);
  return last.last !== undefined && 'code' in last.last && last.last.code === code
    ? []
    : [`exit ${code}, not ${JSON.stringify(last.last)}`];
}

/** One submit, at least one start before an end of its own, and one end, which matches the ad. */
function wrongEvents({ ad = {}, events }: Evidence, status: number): string[] {
  const count = (type: UserLogEvent['type']) => events.filter((event) => event.type === type).length;
  const ends = events.flatMap((event) => (event.type === 'terminated' || event.type === 'aborted' ? event : []));
  const wrong: string[] = [];
  if (count('submit') !== 1) wrong.push(`${count('submit')} times submitted`);
  if (status !== COMPLETED && status !== REMOVED) return wrong;
  if (events[0]?.type !== 'submit') wrong.push(`${events[0]?.type ?? 'nothing'} comes first`);
  const [end] = ends;
  if (end === undefined || ends.length > 1) return [...wrong, `${ends.length} ends`];
  if (events.at(-1) !== end) wrong.push(`${events.at(-1)?.type} after its end`);
  if (end.type === 'aborted') return status === REMOVED ? wrong : [...wrong, 'aborted, but it completed'];
  if (status === REMOVED) return [...wrong, 'terminated, but it was removed'];
  if (count('execute') === 0) wrong.push('it never executed');
  const told = end.exitCode ?? -end.signal;
  const own = ad['ExitBySignal'] === true ? -Number(ad['ExitSignal']) : Number(ad['ExitCode']);
  if (told !== own) wrong.push(`its end is ${told} in the log, ${own} in the ad`);
  return wrong;
}
