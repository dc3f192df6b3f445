import { isEnd, JOB_STATUS, LIFE, next, type State } from '../../src/job/life.ts';
import type { QueueEvent } from '../../src/job/events.ts';
import type { Change, ChangeResult, ProcInput } from '../../src/queue/api.ts';

export interface ModelJob {
  state: State;
  manager: string;
  site: string;
  attempt: number;
  priority: number;
  own: Record<string, string | null>;
  /** It made a step in its life: there is an event for it. */
  stepped: boolean;
}

/** The queue in its simplest form, to compare the real one with. */
export class Model {
  readonly jobs = new Map<string, ModelJob>();
  readonly retired = new Map<string, State>();
  /** Cluster to its shared attributes; `next` is undefined if no more procs will be materialized. */
  readonly clusters = new Map<
    number,
    { ad: Record<string, string>; next: number; late: boolean; place: { manager: string; site: string } }
  >();
  readonly epochs = new Map<string, number>();

  copy(): Model {
    const other = new Model();
    for (const [id, job] of this.jobs) other.jobs.set(id, { ...job, own: { ...job.own } });
    for (const [id, state] of this.retired) other.retired.set(id, state);
    for (const [id, cluster] of this.clusters) other.clusters.set(id, { ...cluster, ad: { ...cluster.ad } });
    for (const [name, epoch] of this.epochs) other.epochs.set(name, epoch);
    return other;
  }

  add(cluster: number, procs: readonly ProcInput[]): void {
    const shared = this.clusters.get(cluster);
    if (!shared) throw new Error('no cluster');
    for (const { attrs, proc = shared.next, state = 'idle', manager, site } of procs) {
      this.jobs.set(`${cluster}.${proc}`, {
        state,
        manager: manager ?? shared.place.manager,
        site: site ?? shared.place.site,
        attempt: 0,
        priority: Number(attrs['JobPrio'] ?? shared.ad['JobPrio'] ?? 0),
        own: { ...attrs },
        stepped: false,
      });
      shared.next = proc + 1;
    }
  }

  /** What the queue must answer, with its effect here. */
  change(change: Change, stale: boolean): Partial<ChangeResult> {
    const job = this.jobs.get(`${change.id.cluster}.${change.id.proc}`);
    if (!job) return { ok: false, why: 'no-such-job' };
    if (stale) return { ok: false, why: 'stale-epoch' };
    const to = change.event ? next(job.state, change.event) : job.state;
    const from = typeof change.from === 'string' ? [change.from] : change.from;
    const unroutable = change.route && to !== 'idle' && to !== 'held' && change.event !== 'adopted';
    if (!to || (from && !from.includes(job.state)) || unroutable)
      return { ok: false, why: 'wrong-state', state: job.state };
    const away = change.at && (change.at.manager !== job.manager || change.at.site !== job.site);
    const leaves = change.event === 'withdrawn' || change.event === 'forgotten';
    const wished = typeof job.own['GryphusMoveTo'] === 'string' && !change.route && (to === 'idle' || to === 'held');
    if (away) return { ok: false, why: 'wrong-state', state: job.state };
    if (change.attempt !== undefined && change.attempt !== job.attempt)
      return { ok: false, why: 'wrong-attempt', state: job.state };
    // Only a candidate is granted, and no job here has one.
    // No change here names an attempt to adopt, either.
    if (change.event === 'granted' || change.event === 'adopted' || (leaves && wished))
      return { ok: false, why: 'wrong-state', state: job.state };
    if (LIFE[to].shows !== LIFE[job.state].shows) job.own['LastJobStatus'] = String(JOB_STATUS[LIFE[job.state].shows]);
    for (const [name, text] of Object.entries(change.set ?? {})) {
      job.own[name] = text;
      if (name === 'JobPrio') job.priority = Number(text ?? 0);
    }
    if (change.event === 'take') job.attempt += 1;
    job.state = to;
    if (change.event) job.stepped = true;
    Object.assign(job, change.route);
    return { ok: true, state: to, attempt: job.attempt };
  }

  retire(ids: readonly string[]): number {
    let gone = 0;
    for (const id of ids) {
      const job = this.jobs.get(id);
      if (!job || !isEnd(job.state)) continue;
      this.jobs.delete(id);
      this.retired.set(id, job.state);
      gone += 1;
      this.sweep(Number(id.split('.')[0]));
    }
    return gone;
  }

  sweep(cluster: number): void {
    const left = [...this.jobs.keys()].some((id) => id.startsWith(`${cluster}.`));
    if (!left && !this.clusters.get(cluster)?.late) this.clusters.delete(cluster);
  }

  /** JobPrio descending, then cluster and proc. */
  order(manager: string, site: string, state: State): string[] {
    const split = (id: string) => id.split('.').map(Number);
    return [...this.jobs]
      .filter(([, job]) => job.manager === manager && job.site === site && job.state === state)
      .sort(([a, x], [b, y]) => {
        const [c = 0, p = 0] = split(a);
        const [d = 0, q = 0] = split(b);
        return y.priority - x.priority || c - d || p - q;
      })
      .map(([id]) => id);
  }
}

/** What a reader of only the events knows: each job's state and attempt, and who left. */
export function replay(events: readonly QueueEvent[]): {
  readonly live: Map<string, string>;
  readonly gone: Set<string>;
} {
  const live = new Map<string, string>();
  const gone = new Set<string>();
  for (const event of events) {
    if (event.type === 'submitted' || event.type === 'materialized') {
      for (const [from, to] of event.procs) {
        for (let proc = from; proc < to; proc++) live.set(`${event.cluster}.${proc}`, '0');
      }
    } else if (event.type === 'transition') {
      const [was] = (live.get(event.job) ?? '').split(' ').slice(1);
      if (was !== undefined && was !== event.from) throw new Error(`${event.job} was ${was}, not ${event.from}`);
      live.set(event.job, `${event.attempt} ${event.to}`);
    } else if (event.type === 'retired') {
      for (const job of event.jobs) {
        live.delete(job);
        gone.add(job);
      }
    }
  }
  return { live, gone };
}
