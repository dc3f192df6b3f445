import type { NodeJobEnd, JobChange } from '../../../src/dag/engine/messages.ts';
import type {
  DagFiles,
  DagWorld,
  FoundSubmit,
  Happening,
  Journal,
  JournalEntry,
  JobLogEvent,
  NodeSubmit,
  ScriptRun,
  SubmitOutcome,
} from '../../../src/dag/manager/world.ts';

/** What a job does once it is in the queue; times in simulated milliseconds. */
export interface SimJob {
  readonly startAfter: number;
  /** undefined: it never starts. */
  readonly run: { readonly duration: number; readonly end: NodeJobEnd } | undefined;
  /** Held instead of ending. */
  readonly heldAtEnd?: string;
}

export type SimSubmit = { readonly procs: readonly SimJob[] } | { readonly failed: string; readonly again: boolean };

export interface SimScript {
  readonly duration: number;
  readonly end: NodeJobEnd;
  readonly notStarted?: string;
  readonly output?: string;
}

/** What the simulated world does on request. */
export interface SimBehaviour {
  submit(request: NodeSubmit, at: number): SimSubmit;
  script(run: ScriptRun, at: number): SimScript;
}

/** A crash: thrown from the world's own calls. */
export class Killed extends Error {}

interface Due {
  readonly at: number;
  readonly order: number;
  readonly cluster?: number;
  readonly make: () => Happening | undefined;
}

/** Files in memory. */
export function memoryFiles(
  initial: Readonly<Record<string, string>> = {},
): DagFiles & { readonly all: Map<string, string> } {
  const all = new Map(Object.entries(initial));
  return {
    all,
    read: (path) => all.get(path),
    absolute: (path) => (path.startsWith('/') ? path : `/sim/${path}`),
    exists: (path) => all.has(path),
    write: (path, text) => void all.set(path, text),
    keep: (path, text) => void all.set(path, text),
    append: (path, text) => void all.set(path, (all.get(path) ?? '') + text),
    size: (path) => Buffer.byteLength(all.get(path) ?? ''),
    truncate: (path, size) =>
      void all.set(
        path,
        Buffer.from(all.get(path) ?? '')
          .subarray(0, size)
          .toString(),
      ),
    rename(from, to) {
      all.set(to, all.get(from) ?? '');
      all.delete(from);
    },
    remove: (path) => void all.delete(path),
  };
}

export class MemoryJournal implements Journal {
  readonly lines: string[] = [];
  read(): readonly JournalEntry[] {
    return this.lines.map((line) => JSON.parse(line) as JournalEntry);
  }
  append(entry: JournalEntry): void {
    this.lines.push(JSON.stringify(entry));
  }
}

/**
 * A queue, jobs and scripts on a simulated clock. The queue and its event stream are durable and survive a killed
 * manager; scripts die with it. `killAt` counts the calls of the world: the manager is killed before, or in the middle
 * of, that call.
 */
export class SimWorld implements DagWorld {
  readonly files: DagFiles;
  readonly journal: Journal;
  private readonly behaviour: SimBehaviour;
  private clock = 1_795_218_362_000;
  private due: Due[] = [];
  private order = 0;
  private nextCluster = 100;
  /** The durable stream of job changes. */
  readonly stream: Extract<Happening, { readonly is: 'job' }>[] = [];
  private readAt = 0;
  readonly submits: (FoundSubmit & { readonly alive: Set<number> })[] = [];
  readonly scriptsRun: ScriptRun[] = [];
  private scriptsAlive: { run: ScriptRun; dueOrder: number }[] = [];
  readonly removedClusters: number[] = [];
  readonly shown: Readonly<Record<string, string>>[] = [];
  /** What the user requested: it is stored in the queue, and every manager receives it. */
  private readonly control: { readonly at: number; readonly happening: Happening }[] = [];
  calls = 0;
  killAt: number | undefined;
  /** Simulated milliseconds after which the world stops waiting for a DAG that hangs. */
  patience = 3_600_000;
  private readonly began = this.clock;

  constructor(behaviour: SimBehaviour, files: DagFiles, journal: Journal = new MemoryJournal()) {
    this.behaviour = behaviour;
    this.files = this.counted(files);
    this.journal = {
      read: () => journal.read(),
      append: (entry) => {
        this.tickCall();
        journal.append(entry);
        this.tickCall();
      },
    };
  }

  /** A new manager starts: what was alive in the old one is gone. */
  reborn(): void {
    this.due = this.due.filter((d) => d.cluster !== undefined);
    for (const { at, happening } of this.control) this.schedule(Math.max(at, this.clock), () => happening);
    this.scriptsAlive = [];
    this.killAt = undefined;
    this.calls = 0;
  }

  now(): number {
    return this.clock;
  }

  at(seconds: number, happening: Happening): void {
    const at = this.began + seconds * 1000;
    this.control.push({ at, happening });
    this.schedule(at, () => happening);
  }

  async next(until: number | undefined): Promise<readonly Happening[]> {
    this.tickCall();
    for (;;) {
      const fresh = this.stream.slice(this.readAt);
      if (fresh.length > 0) {
        this.readAt = this.stream.length;
        return fresh;
      }
      const first = this.due[0];
      if (first === undefined || (until !== undefined && first.at > until)) {
        if (until === undefined || until - this.began > this.patience) return [{ is: 'stop' }];
        this.clock = Math.max(this.clock, until);
        return [];
      }
      const { at } = first;
      this.clock = Math.max(this.clock, at);
      const others: Happening[] = [];
      while (this.due[0] !== undefined && this.due[0].at <= at) {
        const happening = this.due.shift()?.make();
        if (happening === undefined) continue;
        if (happening.is === 'job') this.stream.push({ ...happening, cursor: String(this.stream.length + 1) });
        else others.push(happening);
      }
      const jobs = this.stream.slice(this.readAt);
      this.readAt = this.stream.length;
      if (jobs.length + others.length > 0) return [...jobs, ...others];
    }
  }

  resumeFrom(cursor: string | undefined): void {
    this.readAt = cursor === undefined ? 0 : Number(cursor);
  }

  async submit(requests: readonly NodeSubmit[]): Promise<readonly SubmitOutcome[]> {
    this.tickCall();
    const outcomes: SubmitOutcome[] = [];
    for (const request of requests) {
      outcomes.push(this.submitOne(request));
      this.tickCall();
    }
    return outcomes;
  }

  async findSubmitted(): Promise<readonly FoundSubmit[]> {
    this.tickCall();
    return this.submits;
  }

  startScript(run: ScriptRun): void {
    this.tickCall();
    this.scriptsRun.push(run);
    const { duration, ...rest } = this.behaviour.script(run, this.clock);
    const order = this.schedule(this.clock + duration, () => {
      this.scriptsAlive = this.scriptsAlive.filter((s) => s.dueOrder !== order);
      return { is: 'script-ended', run: run.run, ...rest };
    });
    this.scriptsAlive.push({ run, dueOrder: order });
  }

  killScripts(): void {
    for (const { run, dueOrder } of this.scriptsAlive.splice(0)) {
      this.due = this.due.filter((d) => d.order !== dueOrder);
      this.schedule(this.clock, () => ({ is: 'script-ended', run: run.run, end: { signal: 9 } }));
    }
  }

  async removeCluster(cluster: number): Promise<void> {
    this.tickCall();
    this.removedClusters.push(cluster);
    const submit = this.submits.find((s) => s.cluster === cluster);
    if (submit === undefined) return;
    this.due = this.due.filter((d) => d.cluster !== cluster);
    for (const proc of submit.alive) {
      this.schedule(this.clock + 100, () => this.change(cluster, proc, { what: 'aborted' }), cluster);
    }
  }

  async removeAll(_reason: string, keep: readonly string[]): Promise<void> {
    for (const submit of this.submits) {
      if (submit.alive.size > 0 && !keep.includes(submit.node)) await this.removeCluster(submit.cluster);
    }
  }

  show(attributes: Readonly<Record<string, string>>): void {
    this.shown.push(attributes);
  }

  logEvent(event: JobLogEvent): string {
    return `${JSON.stringify(event)}\n`;
  }

  private submitOne(request: NodeSubmit): SubmitOutcome {
    const outcome = this.behaviour.submit(request, this.clock);
    if ('failed' in outcome) return outcome;
    const cluster = ++this.nextCluster;
    const procs = outcome.procs.length;
    this.submits.push({
      node: request.node,
      retry: request.retry,
      cluster,
      procs,
      alive: new Set(outcome.procs.keys()),
    });
    outcome.procs.forEach((job, proc) => this.plan(cluster, proc, job));
    return { cluster, procs };
  }

  private plan(cluster: number, proc: number, job: SimJob): void {
    const { run } = job;
    if (run === undefined) return;
    const start = this.clock + job.startAfter;
    this.schedule(start, () => this.change(cluster, proc, { what: 'execute' }), cluster);
    const ending: JobChange =
      job.heldAtEnd === undefined ? { what: 'terminated', end: run.end } : { what: 'held', reason: job.heldAtEnd };
    this.schedule(start + run.duration, () => this.change(cluster, proc, ending), cluster);
  }

  private change(cluster: number, proc: number, change: JobChange): Happening | undefined {
    const alive = this.submits.find((s) => s.cluster === cluster)?.alive;
    if (alive?.has(proc) !== true) return undefined;
    if (change.what === 'terminated' || change.what === 'aborted') alive.delete(proc);
    return { is: 'job', cluster, proc, change, cursor: '' };
  }

  private schedule(at: number, make: () => Happening | undefined, cluster?: number): number {
    const order = this.order++;
    let i = this.due.length;
    while (i > 0 && (this.due[i - 1]?.at ?? 0) > at) i--;
    this.due.splice(i, 0, { at, order, make, ...(cluster === undefined ? {} : { cluster }) });
    return order;
  }

  private tickCall(): void {
    this.calls++;
    if (this.killAt === this.calls) throw new Killed(`killed at call ${this.calls}`);
  }

  private counted(files: DagFiles): DagFiles {
    const mark = (): void => this.tickCall();
    return {
      ...files,
      write(path, text) {
        mark();
        files.write(path, text);
      },
      keep(path, text) {
        mark();
        files.keep(path, text);
      },
      append(path, text) {
        mark();
        // A crash in the middle of a write.
        const half = text.length >> 1;
        files.append(path, text.slice(0, half));
        mark();
        files.append(path, text.slice(half));
      },
    };
  }
}
