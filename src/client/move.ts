import { formatGramContact } from '../config/gram-resource.ts';
import { POOL_SITE, type SiteRecord } from '../config/sites.ts';
import { UNIVERSE } from '../job/universe.ts';
import { type Destination, goTo, wish } from '../job/moving.ts';
import type { AttrTexts } from '../job/attrs.ts';
import { LIFE, type State } from '../job/life.ts';
import { readBoolean, readNumber, readString } from '../job/values.ts';
import { platform } from '../pool/host/machine.ts';
import { sizeOf } from '../pool/wire/request-size.ts';
import type { Change, ChangeResult, JobRecord, Queue } from '../queue/api.ts';
import { managerOf } from '../job/identity.ts';
import { withMissing } from './act.ts';
import { selectChunks } from './select.ts';
import type { ActionResult, Selection } from './types.ts';

/**
 * How a job in this state can be moved: at once (`route`); once its site has confirmed that it will not run there,
 * which is requested now (`takeback`) or has been already (`wish`); or not at all, and why.
 */
const WAYS: Readonly<Record<State, 'route' | 'takeback' | 'wish' | { readonly not: string }>> = {
  idle: 'route',
  held: 'route',
  preparing: 'takeback',
  prepared: 'takeback',
  committed: 'takeback',
  unknown: 'takeback',
  withdrawing: 'wish',
  holding: 'wish',
  restarting: 'wish',
  requeueing: 'wish',
  stopping: 'wish',
  running: { not: 'runs at SITE: hold it first, move it, release it' },
  suspended: { not: 'has started at SITE: hold it first, move it, release it' },
  'unknown-running': { not: 'was running at SITE when last heard of: hold it first, move it, release it' },
  finished: { not: 'has ended at SITE' },
  fetched: { not: 'has ended at SITE' },
  completing: { not: 'has ended at SITE' },
  kept: { not: 'has ended at SITE, which keeps its results: a release brings them home' },
  removing: { not: 'is being removed' },
  completed: { not: 'has completed' },
  removed: { not: 'was removed' },
};

/** How many times a job is looked at again if its state changes in the meantime. */
const TRIES = 5;

/**
 * Moves jobs that have not started to another site; `more`: attributes to set with the move. Returns each job's own
 * result.
 */
export async function move(
  queue: Queue,
  selection: Selection,
  to: SiteRecord,
  more: AttrTexts = {},
): Promise<ActionResult[]> {
  const results: ActionResult[] = [];
  for await (const jobs of selectChunks(queue, selection)) results.push(...(await moveSome(queue, jobs, to, more)));
  return withMissing(selection, results);
}

async function moveSome(
  queue: Queue,
  jobs: readonly JobRecord[],
  to: SiteRecord,
  more: AttrTexts,
): Promise<readonly ActionResult[]> {
  const results = new Map<string, ActionResult>();
  let left = jobs;
  for (let tries = 0; left.length > 0 && tries < TRIES; tries++) {
    const steps = left.map((job) => ({ job, step: stepOf(job, to, more) }));
    const changes = steps.flatMap(({ step }) => ('change' in step ? [step.change] : []));
    const answers = changes.length === 0 ? [] : await queue.transitionMany(changes);
    const again: JobRecord[] = [];
    let at = 0;
    for (const { job, step } of steps) {
      const answer = 'change' in step ? answers[at++] : undefined;
      if (answer?.ok === false && answer.why === 'wrong-state') again.push(job);
      results.set(nameOf(job), resultOf(job, step, answer));
    }
    left = again.length === 0 ? [] : await queue.get(again.map(({ id }) => id));
  }
  return jobs.flatMap((job) => results.get(nameOf(job)) ?? []);
}

type Step =
  | { readonly change: Change; readonly message: string }
  | { readonly result: 'already' | 'bad-state'; readonly message: string };

function stepOf(job: JobRecord, to: SiteRecord, more: AttrTexts): Step {
  const way = WAYS[job.state];
  if (typeof way === 'object') return { result: 'bad-state', message: way.not.replace('SITE', job.site) };
  const bound = boundTo(job, to);
  if (bound !== undefined) return { result: 'bad-state', message: bound };
  const wished = readString(job.attrs, 'GryphusMoveTo');
  if ((wished ?? job.site) === to.name && way !== 'wish')
    return { result: 'already', message: `already at ${to.name}` };
  const pool = to.name === POOL_SITE.name;
  const there: Destination = {
    site: to.name,
    manager: managerOf(job, to),
    resource: pool ? undefined : resourceOf(to),
  };
  const set = { ...(pool ? poolNeeds(job) : {}), ...more };
  const { id, state } = job;
  if (way === 'route') {
    const { route, set: own } = goTo(there, readNumber(job.attrs, 'JobUniverse'));
    return { change: { id, from: state, route, set: { ...own, ...set } }, message: `moved to ${to.name}` };
  }
  const change = { id, from: state, set: { ...wish(there), ...set } };
  if (way === 'takeback') {
    return {
      change: { ...change, event: 'takeback', attempt: job.attempt },
      message: `marked for ${to.name}, unless already started at ${job.site}`,
    };
  }
  return { change, message: `marked for ${to.name}, once ${job.site} has confirmed` };
}

/** Why no other place can run the job. */
function boundTo({ attrs }: JobRecord, to: SiteRecord): string | undefined {
  if (readNumber(attrs, 'JobUniverse') === UNIVERSE.scheduler)
    return 'is a DAG manager: it runs here, and its nodes can be moved';
  if (attrs.has('GryphusGlidein')) return `is a glidein: start others with \`gryphus glidein start --site ${to.name}\``;
  const { parallel, mpi } = UNIVERSE;
  const universe = readNumber(attrs, 'JobUniverse');
  const here = universe === parallel || universe === mpi;
  if (to.name === POOL_SITE.name && attrs.has('HostNumber'))
    return 'needs several machines of one site: in the pool, write universe = parallel without grid_resource';
  if (here && to.name !== POOL_SITE.name && !attrs.has('GridResource'))
    return 'is made for several machines of the pool: at a site, its program would have to start the others';
  const container = readBoolean(attrs, 'WantContainer') === true || readBoolean(attrs, 'WantDocker') === true;
  if (container && to.name !== POOL_SITE.name) return 'runs in a container, which only the pool supports';
  return undefined;
}

/** The site as a value of `grid_resource`. */
function resourceOf({ name, batch, target }: SiteRecord): string {
  return target.kind === 'gram' ? `gt2 ${formatGramContact(target)}` : `batch ${batch} ${name}`;
}

/** What every job of the pool has but one made for elsewhere lacks: its needs, and which machines suit it. */
function poolNeeds({ attrs }: JobRecord): AttrTexts {
  if (readNumber(attrs, 'JobUniverse') === UNIVERSE.vanilla) return {};
  const java = readNumber(attrs, 'JobUniverse') === UNIVERSE.java;
  const { cpus, memoryMb, diskKb } = sizeOf({ cpus: 1, memoryMb: undefined, diskKb: undefined, gpus: undefined });
  const needs: Record<string, string> = {};
  for (const [name, value] of Object.entries({ RequestCpus: cpus, RequestMemory: memoryMb, RequestDisk: diskKb }))
    if (!attrs.has(name)) needs[name] = String(value);
  if ((attrs.get('Requirements') ?? 'true').toLowerCase() !== 'true') return needs;
  const { Arch, OpSys } = platform();
  const clauses = [
    ...(java ? ['TARGET.HasJava'] : [`TARGET.Arch == ${Arch}`, `TARGET.OpSys == ${OpSys}`]),
    'TARGET.Disk >= RequestDisk',
    'TARGET.Memory >= RequestMemory',
    '(TARGET.FileSystemDomain == MY.FileSystemDomain) || (TARGET.HasFileTransfer)',
  ];
  return { ...needs, Requirements: clauses.map((clause) => `(${clause})`).join(' && ') };
}

function resultOf({ id, state }: JobRecord, step: Step, answer: ChangeResult | undefined): ActionResult {
  if ('result' in step) return { id, result: step.result, message: step.message };
  if (answer?.ok) return { id, result: 'done', message: step.message };
  if (!answer || answer.why === 'no-such-job') return { id, result: 'not-found', message: 'not found' };
  return { id, result: 'bad-state', message: `not possible now: the job is ${LIFE[answer.state ?? state].shows}` };
}

function nameOf({ id }: JobRecord): string {
  return `${id.cluster}.${id.proc}`;
}
