import { GryphusError } from '../errors.ts';
import type { StoredAttr } from './attributes.ts';
import { restore, store } from './attributes.ts';
import type { ClusterPart, ProcAd } from './cluster.ts';
import { procsOf } from './cluster.ts';
import { allSteps } from './commands/all.ts';
import { Complaints } from './complaints.ts';
import type { Attributes } from './draft.ts';
import { Expander } from './expand.ts';
import { badInput, type Place } from './fault.ts';
import { JobRun } from './job-run.ts';
import { MacroTable } from './macros.ts';
import type { ClusterKind, MakerScope } from './maker.ts';
import { Missing } from './missing.ts';
import type { MachineFacts } from './options.ts';
import { DEFAULT_POLICY } from './options.ts';
import type { QueuePlan } from './queue-items.ts';
import type { SubmitWorld } from './world.ts';

const VERSION = 1;

/** A cluster whose jobs have yet to be made. JSON. */
interface Digest {
  readonly version: number;
  readonly file: string | undefined;
  readonly cwd: string;
  readonly owner: string;
  readonly now: number;
  readonly machine: MachineFacts;
  readonly plan: QueuePlan;
  readonly place: Place;
  readonly kind: ClusterKind;
  readonly macros: readonly (readonly [name: string, value: string, line: number])[];
  readonly defaults: readonly (readonly [name: string, value: string])[];
  readonly environment: Readonly<Record<string, string>>;
  readonly base: readonly StoredAttr[];
  readonly steps: readonly (readonly [name: string, live: boolean, reads: string, writes: string])[];
}

/** Stores the only queue statement of a cluster. */
export function writeDigest(part: ClusterPart, base: Attributes, owner: string): string {
  const { run, scope } = part;
  const digest: Digest = {
    version: VERSION,
    file: scope.file,
    cwd: scope.cwd,
    owner,
    now: scope.now,
    machine: scope.machine,
    plan: run.setup.plan,
    place: run.setup.place,
    kind: run.setup.kind,
    macros: scope.macros.all().map(({ name, value, place }) => [name, value, place.line]),
    defaults: [...scope.macros.defaults()],
    environment: Object.fromEntries(scope.seen),
    base: store(base),
    steps: run.records.map(({ name, live, reads, writes }) => [
      name,
      live,
      [...reads].join(' '),
      [...writes].join(' '),
    ]),
  };
  return JSON.stringify(digest);
}

/** When jobs are made later, only what was stored is available, and nothing else of the submitter's machine. */
function keptWorld(environment: Readonly<Record<string, string>>): SubmitWorld {
  const nothing = { ok: false, reason: 'not kept' } as const;
  return {
    readText: () => nothing,
    writeText: () => nothing,
    run: () => nothing,
    stdin: () => nothing,
    look: () => undefined,
    treeBytes: () => 0,
    list: () => [],
    head: () => '',
    environment,
    uid: 0,
    random: Math.random,
  };
}

function words(text: string): Set<string> {
  return new Set(text.split(' ').filter((word) => word !== ''));
}

interface Opened {
  readonly part: ClusterPart;
  readonly base: Attributes;
}

function open(text: string): Opened {
  const digest = JSON.parse(text) as Digest;
  if (digest.version !== VERSION) {
    throw new GryphusError('state-version', `the jobs to come were stored by another version (${digest.version})`, {
      suggestions: ['Use the version of gryphus that submitted them.'],
    });
  }
  const file = digest.file ?? '<stdin>';
  const macros = new MacroTable(new Map(digest.defaults));
  for (const [name, value, line] of digest.macros) macros.define(name, value, { file, line });
  const world = keptWorld(digest.environment);
  const expander: Expander = new Expander({
    macros,
    cwd: digest.cwd,
    env: (name) => world.environment[name],
    random: () => world.random(),
    // The cluster's other jobs wait until the user has dealt with it.
    complain: (message) => {
      throw badInput(expander.place, message);
    },
  });
  const scope: MakerScope = {
    macros,
    expander,
    world,
    cwd: digest.cwd,
    machine: digest.machine,
    policy: DEFAULT_POLICY,
    file: digest.file,
    now: digest.now,
    seen: new Map(),
    late: true,
    complaints: new Complaints(),
    missing: new Missing(world),
    warn: () => undefined,
  };
  const { plan, kind, place } = digest;
  const run = new JobRun({ plan, kind, place, firstProc: 0, steps: allSteps(macros, digest.owner) });
  run.resume(
    digest.steps.map(([name, live, reads, writes]) => {
      return { name, live, reads: words(reads), writes: words(writes) };
    }),
  );
  return { part: { run, scope }, base: restore(digest.base) };
}

/** The digest opened last, cached because the jobs of a cluster are made in many small batches. */
let last: { readonly text: string; readonly opened: Opened } | undefined;

export interface MaterializeRequest {
  readonly cluster: number;
  readonly fromProc: number;
  readonly count: number;
}

export interface Materialized {
  /** Made one by one as they are read. */
  readonly procs: Iterable<ProcAd>;
  /** Whether the batch includes the cluster's last job. */
  readonly done: boolean;
}

/**
 * Makes jobs of a cluster submitted earlier. Throws GryphusError 'state-version', or 'bad-input' when a job is read.
 */
export function materialize(digest: string, request: MaterializeRequest): Materialized {
  if (last?.text !== digest) last = { text: digest, opened: open(digest) };
  const { part, base } = last.opened;
  const { cluster, fromProc: from, count } = request;
  return { procs: procsOf([part], base, { cluster, from, count }), done: from + count >= part.run.count };
}
