import { type Dependency, parseDependency, type Target, type Term } from '../job/dependency.ts';
import { HELD_AT_SUBMIT, released } from '../job/hold.ts';
import { isEnd, type State } from '../job/life.ts';
import { parseJobId } from '../job/ids.ts';
import { outcomeOf, wentWell } from '../job/outcome.ts';
import { quoted, readBoolean, readNumber, readString } from '../job/values.ts';
import type { Change, EventEntry, JobRecord, Queue, SeenJob } from '../queue/api.ts';
import { DEPENDENCIES, type Waiting } from '../queue/tables.ts';
import type { Listener } from './listener.ts';

/** What is known of the jobs that a term names. */
type Met = 'yes' | 'not-yet' | 'never';

interface Known extends Waiting {
  readonly cluster: number;
  readonly wants: Dependency;
}

/** States of jobs that have not started. */
const BEFORE_START: ReadonlySet<State> = new Set([
  'idle',
  'preparing',
  'prepared',
  'committed',
  'unknown',
  'restarting',
  'withdrawing',
  'requeueing',
  'held',
  'holding',
]);

/**
 * Jobs that wait for others (`GryphusDependency`, from a batch script's `--dependency`) are submitted on hold. They are
 * released when the others have done what they wait for; if that cannot happen any more, their hold reason says so, or
 * they are removed.
 */
export class Dependencies implements Listener {
  readonly #queue: Queue;
  #waiting: Map<number, Known> | undefined;

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  async hear(entries: readonly EventEntry[]): Promise<void> {
    const waiting = (this.#waiting ??= await this.#load());
    const touched = new Set<number>();
    const fresh: number[] = [];
    let ends = false;
    for (const { event } of entries) {
      if (event.type === 'submitted') fresh.push(event.cluster);
      else if (event.type === 'materialized') touched.add(event.cluster);
      else if (event.type === 'transition' && (isEnd(event.to) || event.to === 'running')) {
        ends ||= isEnd(event.to);
        if (waiting.size > 0) touched.add(parseJobId(event.job)?.cluster ?? 0);
      }
    }
    const due = new Set<number>(await this.#welcome(fresh, waiting));
    if (waiting.size === 0) return;
    for (const one of waiting.values()) if (concerns(one, touched, ends)) due.add(one.cluster);
    for (const cluster of due) {
      const one = waiting.get(cluster);
      if (one) await this.#look(one, waiting);
    }
  }

  async #load(): Promise<Map<number, Known>> {
    const rows = await DEPENDENCIES.list(this.#queue.kv);
    return new Map(rows.map(({ key, value }) => [Number(key), known(Number(key), value)]));
  }

  /** Those of the new clusters that wait for others. */
  async #welcome(clusters: readonly number[], waiting: Map<number, Known>): Promise<number[]> {
    if (clusters.length === 0) return [];
    const first = await this.#queue.get(clusters.map((cluster) => ({ cluster, proc: 0 })));
    const found: number[] = [];
    for (const { id, attrs } of first) {
      const dependency = readString(attrs, 'GryphusDependency');
      if (dependency === undefined) continue;
      const row: Waiting = {
        dependency,
        removes: readBoolean(attrs, 'GryphusDependencyRemoves') === true,
        owner: readString(attrs, 'Owner') ?? '',
        name: readString(attrs, 'JobBatchName') ?? '',
        met: false,
      };
      await DEPENDENCIES.set(this.#queue.kv, String(id.cluster), row);
      waiting.set(id.cluster, known(id.cluster, row));
      found.push(id.cluster);
    }
    return found;
  }

  async #look(one: Known, waiting: Map<number, Known>): Promise<void> {
    const tasks = await this.#byTask(one);
    const met = tasks ? 'yes' : one.met ? 'yes' : await this.#met(one);
    if (met === 'not-yet') return;
    const jobs: JobRecord[] = [];
    for await (const job of this.#queue.query({ clusters: [one.cluster], states: ['held'] }))
      if (readNumber(job.attrs, 'HoldReasonCode') === HELD_AT_SUBMIT) jobs.push(job);
    const changes = jobs.flatMap((job): Change[] => {
      const own = tasks ? tasks(job) : met;
      if (own === 'not-yet') return [];
      return [own === 'yes' ? release(job) : one.removes ? remove(job) : never(job, one)];
    });
    if (changes.length > 0) await this.#queue.transitionMany(changes);
    await this.#settle(one, waiting, tasks !== undefined, changes.length < jobs.length);
  }

  /** Later jobs of the cluster find the answer in the table. */
  async #settle(one: Known, waiting: Map<number, Known>, byTask: boolean, some: boolean): Promise<void> {
    const [summary] = await this.#queue.summaries([one.cluster]);
    const more = summary !== undefined && summary.nextProc < summary.total;
    if (some || more) {
      if (byTask || one.met) return;
      const row: Waiting = {
        dependency: one.dependency,
        removes: one.removes,
        owner: one.owner,
        name: one.name,
        met: true,
      };
      waiting.set(one.cluster, known(one.cluster, row));
      await DEPENDENCIES.set(this.#queue.kv, String(one.cluster), row);
    } else {
      waiting.delete(one.cluster);
      await DEPENDENCIES.delete(this.#queue.kv, String(one.cluster));
    }
  }

  /** For a dependency of each task on the same task of another array. */
  async #byTask({ wants }: Known): Promise<((job: JobRecord) => Met) | undefined> {
    const [term] = wants.terms;
    if (term === undefined || (term.kind !== 'aftercorr' && term.kind !== 'aftercorrany')) return undefined;
    const states = new Map<number, Met>();
    for (const { cluster } of term.targets) {
      for await (const { jobs } of this.#queue.look([{ clusters: [cluster] }]))
        for (const job of jobs) {
          const ended = endedWell(job);
          const now = ended === undefined ? 'not-yet' : ended || term.kind === 'aftercorrany' ? 'yes' : 'never';
          states.set(readNumber(job.attrs, 'GryphusArrayTask') ?? job.id.proc, now);
        }
    }
    return (job) => states.get(readNumber(job.attrs, 'GryphusArrayTask') ?? job.id.proc) ?? 'not-yet';
  }

  async #met(one: Known): Promise<Met> {
    const answers: Met[] = [];
    for (const term of one.wants.terms) answers.push(await this.#term(term, one));
    const enough = one.wants.any ? answers.includes('yes') : answers.every((answer) => answer === 'yes');
    if (enough) return 'yes';
    const hopeless = one.wants.any ? answers.every((answer) => answer === 'never') : answers.includes('never');
    return hopeless ? 'never' : 'not-yet';
  }

  async #term(term: Term, one: Known): Promise<Met> {
    if (term.kind === 'singleton') return this.#alone(one);
    let met: Met = 'yes';
    for (const target of term.targets) {
      const now = await this.#target(term.kind, target);
      if (now === 'never') return 'never';
      if (now === 'not-yet') met = 'not-yet';
    }
    return met;
  }

  /** Whether no earlier job of this name is left. */
  async #alone({ cluster, name, owner }: Known): Promise<Met> {
    const others = (await this.#queue.clusters()).filter(
      (other) => other.cluster < cluster && other.batchName === name && other.owner === owner,
    );
    const live = others.some(({ counts, nextProc, total }) => {
      const left = Object.entries(counts).some(([state, count]) => count > 0 && !isEnd(state as State));
      return left || nextProc < total;
    });
    return live ? 'not-yet' : 'yes';
  }

  async #target(kind: Exclude<Term['kind'], 'singleton'>, { cluster, task }: Target): Promise<Met> {
    const [summary] = await this.#queue.summaries([cluster]);
    const makesMore = summary !== undefined && summary.nextProc < summary.total;
    if (summary !== undefined && task === undefined) {
      const live = Object.entries(summary.counts).some(([state, count]) => count > 0 && !isEnd(state as State));
      if (makesMore || (live && kind !== 'after')) return 'not-yet';
    }
    let seen = 0;
    let failed = 0;
    let fine = 0;
    const where =
      task === undefined
        ? {}
        : { where: (job: SeenJob) => (readNumber(job.attrs, 'GryphusArrayTask') ?? job.id.proc) === task };
    for await (const { jobs } of this.#queue.look([{ clusters: [cluster], ...where }])) {
      for (const job of jobs) {
        seen++;
        if (kind === 'after' && !BEFORE_START.has(job.state)) continue;
        const ended = endedWell(job);
        if (ended === undefined) return 'not-yet';
        if (ended) fine++;
        else failed++;
      }
    }
    // A job that has left queue and history has ended, but not demonstrably well; unless it is one that is made later.
    if (seen === 0 && makesMore) return 'not-yet';
    if (seen === 0) return kind === 'afterok' || kind === 'aftercorr' ? 'never' : 'yes';
    if (kind === 'afterok') return failed > 0 ? 'never' : 'yes';
    if (kind === 'afternotok') return failed > 0 ? 'yes' : fine > 0 ? 'never' : 'yes';
    return 'yes';
  }
}

function known(cluster: number, row: Waiting): Known {
  return { ...row, cluster, wants: parseDependency(row.dependency) };
}

function concerns({ cluster, wants, met }: Known, touched: ReadonlySet<number>, ends: boolean): boolean {
  if (touched.has(cluster)) return true;
  if (met) return false;
  return wants.terms.some((term) =>
    term.kind === 'singleton' ? ends : term.targets.some((one) => touched.has(one.cluster)),
  );
}

/** `undefined`: it has not ended. */
function endedWell({ state, attrs }: SeenJob): boolean | undefined {
  return isEnd(state) ? wentWell(outcomeOf(state, attrs)) : undefined;
}

function release(job: JobRecord): Change {
  // It waits for its time, and is then released by its own policy.
  if ((readNumber(job.attrs, 'GryphusBegin') ?? 0) > Date.now() / 1000)
    return { id: job.id, from: 'held', set: { GryphusDependency: null, HoldReason: quoted('BeginTime') } };
  return {
    id: job.id,
    event: 'release',
    from: 'held',
    set: { ...released(job), ReleaseReason: quoted('The dependency is met.') },
  };
}

function remove(job: JobRecord): Change {
  return {
    id: job.id,
    event: 'remove',
    from: 'held',
    set: { RemoveReason: quoted('The dependency can no longer be met.') },
  };
}

function never(job: JobRecord, { dependency }: Waiting): Change {
  return { id: job.id, from: 'held', set: { HoldReason: quoted(`DependencyNeverSatisfied: ${dependency}`) } };
}
