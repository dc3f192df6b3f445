import type { Attributes } from './draft.ts';
import { Draft } from './draft.ts';
import type { SourcePlace } from './fault.ts';
import type { ClusterKind, MakerScope, Step } from './maker.ts';
import { JobMaker } from './maker.ts';
import { countRows, planStep, rowValues } from './plan-rows.ts';
import type { QueuePlan } from './queue-items.ts';

/** What a step did for the first job, which decides whether later jobs can skip it. */
export interface StepRecord {
  readonly name: string;
  /** It looked up a macro that differs between jobs, or a random value. */
  readonly live: boolean;
  readonly reads: ReadonlySet<string>;
  readonly writes: ReadonlySet<string>;
}

/** Macros whose value differs between jobs; the cluster's number is only known once the queue has assigned it. */
const LIVE = ['cluster', 'clusterid', 'process', 'procid', 'step', 'row', 'itemindex', 'item'];

/** Finds the steps to run again for each job: the live ones, and all that touch attributes written by those. */
export function dependentSteps(records: readonly StepRecord[]): Set<string> {
  const dependent = new Set(records.filter((record) => record.live).map((record) => record.name));
  for (let before = -1; before !== dependent.size; ) {
    before = dependent.size;
    const written = new Set(records.filter(({ name }) => dependent.has(name)).flatMap(({ writes }) => [...writes]));
    const touches = (names: ReadonlySet<string>): boolean => [...names].some((name) => written.has(name));
    for (const record of records) if (touches(record.reads) || touches(record.writes)) dependent.add(record.name);
  }
  return dependent;
}

export interface JobRunSetup {
  readonly plan: QueuePlan;
  readonly steps: readonly Step[];
  readonly kind: ClusterKind;
  readonly place: SourcePlace;
  /** The number of the statement's first job. */
  readonly firstProc: number;
}

/** Makes the jobs of one queue statement: the first in full, the others only where they can differ. */
export class JobRun {
  readonly setup: JobRunSetup;
  readonly count: number;
  readonly #records = new Map<string, StepRecord>();
  #again: readonly Step[] = [];
  #fixed: Attributes = new Map();
  readonly #scratch = new Set<string>();

  constructor(setup: JobRunSetup) {
    this.setup = setup;
    this.count = countRows(setup.plan) * setup.plan.count;
  }

  /** Makes the first job in `draft`, which is based on the cluster's ad unless this is the first statement. */
  first(scope: MakerScope, draft: Draft, cluster: number): void {
    const live = new Set([...LIVE, ...this.setup.plan.vars.map((name) => name.toLowerCase())]);
    const job = this.#job(scope, draft, 0, cluster);
    let touched = false;
    scope.macros.onLookup = (key) => {
      if (live.has(key)) touched = true;
    };
    scope.expander.onRandom = () => {
      touched = true;
    };
    for (const step of this.setup.steps) {
      touched = false;
      const trace = { reads: new Set<string>(), writes: new Set<string>() };
      draft.trace = trace;
      step.run(job);
      this.#records.set(step.name, { name: step.name, live: touched, ...trace });
    }
    draft.trace = undefined;
    scope.macros.onLookup = undefined;
    scope.expander.onRandom = undefined;
    this.#choose();
    if (draft.base) this.#fix(draft.own);
  }

  /** What a later process needs to continue the run (see `resume`). */
  get records(): readonly StepRecord[] {
    return [...this.#records.values()];
  }

  /** Continues a run whose first job was made in another process. */
  resume(records: readonly StepRecord[]): void {
    for (const record of records) this.#records.set(record.name, record);
    this.#choose();
  }

  /** The statement's `n`th job (from 0), as its differences from the cluster's ad. */
  job(scope: MakerScope, base: Attributes, n: number, cluster: number): Draft {
    for (;;) {
      const draft = new Draft(base);
      for (const [key, named] of this.#fixed) draft.adopt(key, named);
      const job = this.#job(scope, draft, n, cluster);
      const known = this.#again.map((step) => this.#runAgain(step, job));
      if (known.every(Boolean)) return draft;
      this.#choose();
    }
  }

  /**
   * Runs a step; returns false if it wrote an attribute for the first time, so that other steps may have to run again.
   */
  #runAgain(step: Step, job: JobMaker): boolean {
    const writes = this.#scratch;
    writes.clear();
    job.draft.trace = { writes };
    step.run(job);
    job.draft.trace = undefined;
    const known = this.#records.get(step.name);
    if (!known) return true;
    for (const name of writes) {
      if (known.writes.has(name)) continue;
      this.#records.set(step.name, { ...known, writes: new Set([...known.writes, ...writes]) });
      return false;
    }
    return true;
  }

  #choose(): void {
    const dependent = dependentSteps(this.records);
    this.#again = this.setup.steps.filter((step) => dependent.has(step.name));
    this.#fix(this.#fixed);
  }

  /** Keeps what all jobs of this statement share beyond the cluster's ad. */
  #fix(own: Attributes): void {
    const again = new Set(this.#again.flatMap((step) => [...(this.#records.get(step.name)?.writes ?? [])]));
    this.#fixed = new Map([...own].filter(([key]) => !again.has(key)));
  }

  #job(scope: MakerScope, draft: Draft, n: number, cluster: number): JobMaker {
    const { plan, kind, place, firstProc } = this.setup;
    const { row, item, step } = planStep(plan, n);
    const { macros } = scope;
    const proc = String(firstProc + n);
    macros.setDefault('process', proc);
    macros.setDefault('procid', proc);
    macros.setDefault('row', String(item));
    macros.setDefault('itemindex', String(item));
    macros.setDefault('step', String(step));
    macros.setDefault('cluster', String(cluster));
    macros.setDefault('clusterid', String(cluster));
    for (const [name, value] of rowValues(plan, row)) macros.setLive(name, value, place);
    if (macros.find('item')?.origin !== 'internal' && !plan.vars.includes('Item'))
      macros.define('Item', '', place, 'internal');
    scope.expander.place = place;
    scope.complaints.job = firstProc + n;
    const job = new JobMaker(scope, draft, kind, place, { cluster, proc: firstProc + n });
    job.setInt('ProcId', firstProc + n);
    return job;
  }
}
