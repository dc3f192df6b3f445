import type { ClassAd } from '../../classad/api.ts';
import type { AttrTexts } from '../../job/attrs.ts';
import { attemptOfNode, type AttemptKey, parseAttemptKey } from '../../job/ids.ts';
import { readNumber } from '../../job/values.ts';
import type { Ending, Outcome, Report } from '../../site/contract.ts';
import { nodeReports } from './gangs/results.ts';
import type { AttemptRequest } from '../wire/client-wire.ts';
import type { OutputFile, Size } from '../wire/wire.ts';

/** Jobs that no match can tell apart. */
export interface Autocluster {
  readonly id: string;
  readonly owner: string;
  readonly size: Size;
  readonly texts: AttrTexts;
  readonly ad: ClassAd;
  /** In the order of `goesBefore`. */
  readonly queue: Attempt[];
  /** The mean of its jobs' recent run times, in seconds, and how many jobs were counted. */
  mean: number;
  seen: number;
  /** Whether its jobs go on elsewhere with what they have done. */
  readonly moves: boolean;
}

export type AttemptPhase = 'prepared' | 'idle' | 'granted' | 'running' | 'suspended' | 'ended' | 'withdrawn';

/** One attempt, as known to the central manager. */
export interface Attempt {
  readonly key: AttemptKey;
  /** The client whose connection gets its reports: a GridManager's identity, or a map's session. */
  readonly client: string;
  request: AttemptRequest;
  kind: Autocluster | undefined;
  /** Order of arrival. */
  order: number;
  /** When its job was submitted, in Unix seconds; for a task, when it arrived. */
  readonly submitted: number;
  phase: AttemptPhase;
  /** The worker that it was granted to (its instance), and the boot of that machine. */
  worker?: string;
  boot?: string;
  /** The token that admitted the worker; its issuer can tell that the worker has died. */
  token?: string;
  claim?: string;
  host?: string;
  startedAt?: number;
  ending?: Ending;
  files?: readonly OutputFile[];
  /** Bytes of its streams that its client, who follows it, has received. */
  followed?: { stdout: number; stderr: number; readonly files?: readonly string[] | undefined };
  inline?: { readonly stdout: Buffer; readonly stderr: Buffer };
  /** It ended, and its worker died: results that are not home are lost. */
  orphan?: boolean;
  /** It was granted before this central manager started, and its worker has not said yet whether it runs. */
  isAwaited?: boolean;
  cancelling?: 'remove' | 'vacate' | 'if-not-started';
  /** State and activity of its slot, if its machine's policy changed them. Unix seconds. */
  slot?: {
    readonly state: string;
    readonly activity: string;
    readonly enteredState: number;
    readonly enteredActivity: number;
  };
  /** Why it is waiting, in the words of the last refusal. */
  why?: string;
  /** Of a node of a parallel job: the attempt that it belongs to, and its number in the whole job. */
  readonly node?: NodeOf;
  /** A node that has everything it needs, and waits for the order to start with the others. */
  ready?: boolean;
  /** Of a node: whether its worker was told last to suspend it or to let it go on; absent: not known to have heard. */
  toldStill?: boolean;
  /** Its user has suspended it: only known of a parallel job's attempt. */
  still?: boolean;
  /** Of a parallel job's attempt: the nodes granted to it, by number. */
  nodes?: ReadonlyMap<number, Attempt>;
  /** All nodes of its job, also those of the other jobs of its cluster. */
  all?: () => readonly Attempt[];
  /** Its nodes have been told to start: from now on any of them may run. */
  gone?: boolean;
  /** How it ends: its nodes are being ended. */
  decided?: Ending;
}

export interface NodeOf {
  readonly part: AttemptKey;
  readonly number: number;
}

/** When a job was submitted, in Unix seconds, if its ad says so. */
export function submittedOf(ad: AttrTexts): number | undefined {
  return readNumber({ get: (name) => ad[name] ?? undefined }, 'QDate');
}

/**
 * Whether an attempt is served before another of the same owner, as in HTCondor: by JobPrio, then by when the job was
 * submitted, then by ClusterId and ProcId. A job that was evicted keeps its place.
 */
export function goesBefore(a: Attempt, b: Attempt): boolean {
  if (a.request.prio !== b.request.prio) return a.request.prio > b.request.prio;
  if (a.submitted !== b.submitted) return a.submitted < b.submitted;
  const [one, other] = [parseAttemptKey(a.key), parseAttemptKey(b.key)];
  if (!one || !other) return a.order < b.order;
  if (one.agent !== other.agent) return one.agent < other.agent;
  return (one.cluster - other.cluster || one.proc - other.proc || a.order - b.order) < 0;
}

/** What its client is told of an attempt. */
export function reportOf(attempt: Attempt): Report {
  const { key } = attempt;
  switch (attempt.phase) {
    case 'prepared':
      return { key, is: 'prepared' };
    case 'idle':
    case 'granted':
      // It may be running, so it must not be said to wait.
      if (attempt.isAwaited) return { key, is: 'unclear', message: 'its worker has not come back yet' };
      return { key, is: 'queued', ...(attempt.why === undefined ? {} : { why: attempt.why }) };
    case 'suspended':
      return { key, is: 'suspended' };
    case 'running':
      return {
        key,
        is: 'running',
        ...(attempt.host === undefined ? {} : { host: attempt.host }),
        ...(attempt.startedAt === undefined ? {} : { since: attempt.startedAt }),
        ...reportedNodes(attempt),
      };
    case 'ended': {
      const how = { kind: 'by-site', cause: 'vanished', message: '' } as const;
      return {
        key,
        is: 'ended',
        ...(attempt.ending ?? { how }),
        ...(attempt.host === undefined ? {} : { host: attempt.host }),
        ...(attempt.files?.length === 0 ? { noFiles: true } : {}),
        ...streamsOf(attempt),
        ...reportedNodes(attempt),
      };
    }
    case 'withdrawn':
      return { key, is: 'lost', why: 'it was withdrawn' };
  }
}

/** The nodes of the whole parallel job are told of with the first of its attempts. */
function reportedNodes({ nodes, all }: Attempt): Pick<Extract<Report, { is: 'ended' }>, 'nodes'> {
  return nodes?.has(0) && all ? { nodes: nodeReports(all()) } : {};
}

/** Bytes of both streams up to which a report contains them, so that nobody has to fetch them. */
const IN_REPORT = 8 << 10;

function streamsOf({ inline, files }: Attempt): Pick<Extract<Report, { is: 'ended' }>, 'streams'> {
  if (!inline || files?.length !== 0 || inline.stdout.length + inline.stderr.length > IN_REPORT) return {};
  return { streams: { stdout: inline.stdout.toString('base64'), stderr: inline.stderr.toString('base64') } };
}

/** The part of the key that a job's attempts share, without the attempt number; also the name of its checkpoint. */
export function jobOf(key: AttemptKey): string {
  const attempt = attemptOfNode(key);
  return attempt.slice(0, attempt.lastIndexOf('.'));
}

export function unknownKey(key: AttemptKey): Outcome {
  return { ok: false, refusal: { kind: 'gone', code: 'unknown-key', message: `The pool does not know ${key}.` } };
}
