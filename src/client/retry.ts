import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { TogetherCheck } from '../enqueue/nodes-check.ts';
import type { SiteChooser } from '../enqueue/site-choice.ts';
import { Placement } from '../enqueue/placement.ts';
import type { AttrTexts } from '../job/attrs.ts';
import { formatJobId, type JobId } from '../job/ids.ts';
import { outcomeOf, outcomeText, wentWell } from '../job/outcome.ts';
import { isParallel } from '../job/parallel-node.ts';
import { quoted, readString } from '../job/values.ts';
import type { ProcInput, Queue, SeenJob } from '../queue/api.ts';
import { freshCounters } from '../submit/api.ts';
import { withMissing } from './act.ts';
import { wishOf } from './select.ts';
import type { ActionResult, Selection } from './types.ts';

/** What was done for one job. */
export interface RetryResult extends ActionResult {
  /** The job that runs in its place; absent if none does, or in a dry run. */
  readonly as?: JobId;
  /** How it failed. */
  readonly outcome?: string;
  readonly command?: string;
}

/** In the new job: the one in whose place it runs. */
export const RETRY_OF = 'GryphusRetryOf';

/**
 * Jobs that completed with another exit status than 0 or by a signal, and removed ones, are submitted again, those of
 * one cluster as one cluster. Ids that are named but did not fail have a result that says so; of a wider selection, only
 * the failed jobs have one. A job that was retried before is not retried again.
 */
export async function retry(
  queue: Queue,
  chooser: SiteChooser,
  owner: string,
  selection: Selection,
  dryRun: boolean,
): Promise<RetryResult[]> {
  const retried = await retriedBefore(queue);
  const named = new Set((selection.ids ?? []).map(formatJobId));
  const results: RetryResult[] = [];
  const again = new Map<number, SeenJob[]>();
  for await (const { jobs } of queue.look([wishOf(selection)])) {
    for (const job of jobs) {
      const name = formatJobId(job.id);
      const refused = refusal(job, retried.get(name));
      if (refused === undefined) {
        const failed = again.get(job.id.cluster);
        if (failed) failed.push(job);
        else again.set(job.id.cluster, [job]);
      } else if (named.has(name)) results.push({ id: job.id, ...refused });
    }
  }
  for (const [, jobs] of [...again].sort(([a], [b]) => a - b)) {
    jobs.sort((a, b) => a.id.proc - b.id.proc);
    const cluster = dryRun ? undefined : await submitAgain(queue, chooser, owner, jobs);
    for (const [proc, job] of jobs.entries()) {
      const outcome = outcomeText(outcomeOf(job.state, job.attrs));
      const as = cluster === undefined ? {} : { as: { cluster, proc } };
      const message = cluster === undefined ? outcome : `submitted again as ${cluster}.${proc}`;
      results.push({ id: job.id, result: 'done', message, outcome, command: commandOf(job.attrs), ...as });
    }
  }
  return withMissing(selection, results);
}

type Refusal = Pick<ActionResult, 'result' | 'message'>;

function refusal({ state, attrs }: SeenJob, retriedAs: string | undefined): Refusal | undefined {
  const outcome = outcomeOf(state, attrs);
  if (outcome.is === 'held') return { result: 'bad-state', message: 'is held: `gryphus release` lets it run' };
  if (outcome.is === 'open') return { result: 'bad-state', message: 'has not ended' };
  if (wentWell(outcome)) return { result: 'bad-state', message: 'has not failed' };
  if (retriedAs !== undefined) return { result: 'already', message: `was retried before, as ${retriedAs}` };
  if (attrs.has('DAGManJobId') || attrs.has('DAGNodeName'))
    return { result: 'bad-state', message: "is a DAG's node: submit the DAG again" };
  const out = readString(attrs, 'Out') ?? '/dev/null';
  const place = dirname(resolve(readString(attrs, 'Iwd') ?? '/', out));
  if (!existsSync(place)) return { result: 'bad-state', message: `cannot write its output: ${place} does not exist` };
  return undefined;
}

/** The jobs that were retried, and in place of each, the latest that ran or runs. */
async function retriedBefore(queue: Queue): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  const where = ({ attrs }: SeenJob) => attrs.has(RETRY_OF);
  for await (const { jobs } of queue.look([{ where }])) {
    for (const { id, attrs } of jobs) {
      const of = readString(attrs, RETRY_OF);
      if (of !== undefined) found.set(of, formatJobId(id));
    }
  }
  return found;
}

async function submitAgain(
  queue: Queue,
  chooser: SiteChooser,
  owner: string,
  jobs: readonly SeenJob[],
): Promise<number> {
  const ads = jobs.map(descriptionOf);
  const [shared = {}] = ads;
  const placement = new Placement(chooser, owner, shared);
  const together = new TogetherCheck();
  const inputs = ads.map((ad, proc): ProcInput => {
    const absent = Object.keys(shared).filter((name) => !(name in ad));
    const attrs = { ...together.look(ad, {}), ...Object.fromEntries(absent.map((name) => [name, null])) };
    return { proc, attrs, ...placement.of(different(attrs, shared)) };
  });
  const submitted = await queue.submit({
    clusterAd: isParallel({ get: (name) => shared[name] })
      ? { ...shared, TotalSubmitProcs: String(jobs.length) }
      : shared,
    manager: placement.manager,
    site: placement.known.name,
    procs: inputs,
  });
  return submitted.cluster;
}

function different(attrs: AttrTexts, shared: AttrTexts): AttrTexts {
  return Object.fromEntries(Object.entries(attrs).filter(([name, text]) => shared[name] !== text));
}

/** Attributes that tell what became of a job, and not what it is to do. */
const PAST = new RegExp(
  `^(${[
    'Gryphus(?!Umask$|MaxWait$)\\w*',
    'ClusterId|ProcId|QDate|JobStatus|EnteredCurrentStatus|LastJobStatus|CompletionDate|JobFinishedHookDone',
    'Exit(Code|Signal|Reason|BySignal|Status)|TerminationPending|ToE|OnExit(Code|Signal|BySignal)',
    'Grid(JobId|JobStatus|ResourceUnavailableTime)',
    '(Last)?Hold(Reason\\w*)|LastRelease\\w*|ReleaseReason|RemoveReason|NumHolds\\w*|NumShadow\\w*|NumJobMatches|NumVacates\\w*',
    'JobCurrent\\w*|JobLast\\w*|JobStartDate|JobMaterialize\\w*|TotalSubmitProcs|Last(Remote|Match|Vacate|Suspension)\\w*|Vacate\\w*',
    'Remote(Host|Slot\\w*|Pool|WallClockTime|UserCpu|SysCpu)|StartdIpAddr|StartdPrincipal|Bytes(Recvd|Sent)|BlockWrites|BlockReads',
    'Transfer(In|Out)(Started|Finished|Queued)|Transferring(In|Out)put|Transfer(In|Out)putStats',
    'ResidentSetSize\\w*|ProportionalSetSize\\w*|MemoryUsage|CpusUsage|ScratchDirFileCount|\\w+(Provisioned|_RAW)',
  ].join('|')})$`,
  'i',
);

/** The attributes with which the job was submitted; a site that the broker chose is not among them. */
function descriptionOf({ id, attrs }: SeenJob): Record<string, string> {
  const ad = Object.fromEntries([...attrs].filter(([name]) => !PAST.test(name)));
  if (attrs.has('GryphusRoutedAt')) delete ad['GridResource'];
  const now = Math.floor(Date.now() / 1000);
  return {
    ...ad,
    ...freshCounters(),
    QDate: String(now),
    [RETRY_OF]: quoted(formatJobId(id)),
  };
}

function commandOf(attrs: SeenJob['attrs']): string {
  const args = readString(attrs, 'Args') ?? readString(attrs, 'Arguments') ?? '';
  return `${readString(attrs, 'Cmd') ?? ''} ${args}`.trim();
}
