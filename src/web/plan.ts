import { randomUUID } from 'node:crypto';
import type * as z from 'zod';
import { GryphusError } from '../errors.ts';
import type { ActionResult, Gryphus, JobId, Selection } from '../index.ts';
import { parseJobId } from '../job/ids.ts';
import { LIFE, next } from '../job/life.ts';
import { counted } from '../util/plain-text.ts';
import { type JobTable, nameOf } from './job-table.ts';
import { type Row, ROW_ATTRIBUTES, rowOf } from './row.ts';
import type { ACTED, PLAN, PLAN_ASKED } from './schemas.ts';

type Asked = z.infer<typeof PLAN_ASKED>;
type ActionName = Asked['action'];

interface Planned {
  readonly asked: Asked;
  readonly ids: readonly JobId[];
  readonly until: number;
}

/** How long a plan can be carried out; milliseconds. */
const KEPT_MS = 15 * 60_000;
const EXAMPLES = 5;

const WILL: Readonly<Record<ActionName, (jobs: string) => string>> = {
  hold: (jobs) => `${jobs} will be held. What runs of them is stopped at its site.`,
  release: (jobs) => `${jobs} will be released and run again.`,
  remove: (jobs) => `${jobs} will be removed. What runs of them is stopped at its site. This cannot be undone.`,
  vacate: (jobs) => `${jobs} will leave their slots and run again elsewhere, from the start or their last checkpoint.`,
  suspend: (jobs) => `${jobs} will be suspended: they keep their slots but use no processor.`,
  continue: (jobs) => `${jobs} will go on running.`,
  edit: (jobs) => `${jobs} will be changed.`,
};

/** What an action will do is said first, for exactly the jobs to which it is then done. */
export class Plans {
  readonly #gryphus: Gryphus;
  readonly #table: JobTable;
  readonly #plans = new Map<string, Planned>();

  constructor(gryphus: Gryphus, table: JobTable) {
    this.#gryphus = gryphus;
    this.#table = table;
  }

  async plan(asked: Asked, now = Date.now()): Promise<z.infer<typeof PLAN>> {
    const { action, choice } = asked;
    const rows = await this.#rows(choice);
    const fits: Row[] = [];
    const wont = new Map<string, number>();
    for (const row of rows) {
      const why = obstacle(action, row);
      if (why === undefined) fits.push(row);
      else wont.set(why, (wont.get(why) ?? 0) + 1);
    }
    for (const [id, { until }] of this.#plans) if (until < now) this.#plans.delete(id);
    const plan = randomUUID();
    this.#plans.set(plan, { asked, ids: fits.map(({ id }) => id), until: now + KEPT_MS });
    const set = Object.entries(asked.set ?? {}).map(([name, value]) => `${name} = ${value}`);
    const says = fits.length === 0 ? 'Nothing will happen.' : WILL[action](counted(fits.length, 'job'));
    return {
      plan,
      will: fits.length,
      says: set.length > 0 && fits.length > 0 ? `${says} ${set.join('; ')}` : says,
      wont: [...wont].map(([why, count]) => ({ why, count })),
      examples: fits.slice(0, EXAMPLES).map(({ id }) => nameOf(id)),
    };
  }

  /** Does what was said; each plan once. */
  async act(plan: string, reason: string | undefined): Promise<z.infer<typeof ACTED>> {
    const planned = this.#plans.get(plan);
    this.#plans.delete(plan);
    if (!planned) throw new GryphusError('not-found', 'This plan was carried out already, or is too old.');
    const { asked, ids } = planned;
    if (ids.length === 0) return { done: 0, others: [] };
    return summary(await this.#do(asked, { ids, ...clustersOf(asked) }, reason));
  }

  #do({ action, set }: Asked, selection: Selection, reason: string | undefined): Promise<readonly ActionResult[]> {
    switch (action) {
      case 'hold':
      case 'release':
      case 'remove':
        return this.#gryphus.act(action, { ...selection, ...(reason ? { reason } : {}) });
      case 'vacate':
      case 'suspend':
      case 'continue':
        return this.#gryphus.steer(action, { ids: selection.ids ?? [] });
      case 'edit':
        return this.#gryphus.edit({ ids: selection.ids ?? [] }, set ?? {});
    }
  }

  async #rows({ jobs, clusters, box }: Asked['choice']): Promise<readonly Row[]> {
    if (box !== undefined) return this.#table.matching(box);
    const rows: Row[] = [];
    const ids = jobs.flatMap((job) => parseJobId(job) ?? []);
    for await (const some of this.#gryphus.queryChunks({ ids, clusters, attributes: ROW_ATTRIBUTES }))
      for (const job of some) rows.push(rowOf(job));
    return rows;
  }
}

/** Whole clusters are named as such, because their jobs that are yet to be made are held or removed with them. */
function clustersOf({ action, choice }: Asked): Pick<Selection, 'clusters'> {
  const whole = action === 'hold' || action === 'remove' || action === 'release';
  return whole && choice.box === undefined && choice.clusters.length > 0 ? { clusters: choice.clusters } : {};
}

/** Why the action does nothing to this job; `undefined` if it does. */
function obstacle(action: ActionName, { state, site }: Row): string | undefined {
  const { shows } = LIFE[state];
  switch (action) {
    case 'hold':
    case 'release':
    case 'remove':
      return next(state, action) === undefined && !(action === 'remove' && shows === 'completed')
        ? `${shows}: ${action} does nothing`
        : undefined;
    case 'vacate':
    case 'suspend':
    case 'continue': {
      if (site !== 'pool') return 'not in the pool';
      const wanted =
        action === 'continue' ? ['suspended'] : action === 'suspend' ? ['running'] : ['running', 'suspended'];
      return wanted.includes(shows) ? undefined : shows;
    }
    case 'edit':
      return shows === 'completed' || shows === 'removed' ? shows : undefined;
  }
}

function summary(results: readonly ActionResult[]): z.infer<typeof ACTED> {
  const others = new Map<string, { message: string; count: number; jobs: string[] }>();
  let done = 0;
  for (const { id, result, message } of results) {
    if (result === 'done') {
      done += 1;
      continue;
    }
    const one = others.get(message) ?? { message, count: 0, jobs: [] };
    one.count += 1;
    if (one.jobs.length < EXAMPLES) one.jobs.push(nameOf(id));
    others.set(message, one);
  }
  return { done, others: [...others.values()] };
}

export function idOf(job: string): JobId {
  const id = parseJobId(job);
  if (id) return id;
  throw new GryphusError('bad-input', `${JSON.stringify(job)} is no job: write it as 12.3.`);
}
