import * as z from 'zod';
import { GryphusError } from '../errors.ts';
import { type Read, text, textsByName } from '../util/schema.ts';
import { parseStored } from '../util/stored-json.ts';
import { restore, store, STORED_ATTR } from './attributes.ts';
import type { ClusterPart, ProcAd } from './cluster.ts';
import { procsOf } from './cluster.ts';
import { allSteps } from './commands/all.ts';
import { Complaints } from './complaints.ts';
import type { Attributes } from './draft.ts';
import { Expander } from './expand.ts';
import { badInput, PLACE } from './fault.ts';
import { JobRun } from './job-run.ts';
import { MacroTable } from './macros.ts';
import { CLUSTER_KIND, type MakerScope } from './maker.ts';
import { Missing } from './missing.ts';
import { DEFAULT_POLICY, MACHINE_FACTS } from './options.ts';
import { QUEUE_PLAN } from './queue-items.ts';
import type { SubmitWorld } from './world.ts';

const VERSION = 1;

/** A cluster whose jobs have yet to be made. JSON. */
const DIGEST = z.object({
  version: z.number(),
  file: z.optional(text),
  cwd: text,
  owner: text,
  now: z.number(),
  machine: MACHINE_FACTS,
  plan: QUEUE_PLAN,
  place: PLACE,
  kind: CLUSTER_KIND,
  /** Name, value and line. */
  macros: z.array(z.tuple([text, text, z.int()])),
  /** Name and value. */
  defaults: z.array(z.tuple([text, text])),
  environment: textsByName,
  base: z.array(STORED_ATTR),
  /** Name, whether it is live, what it reads and what it writes. */
  steps: z.array(z.tuple([text, z.boolean(), text, text])),
});
type Digest = Read<typeof DIGEST>;

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

function open(given: string): Opened {
  const digest = parseStored(DIGEST, given, {
    what: 'The description of the jobs to come',
    remedy: 'Remove the cluster (gryphus rm) and submit it again.',
  });
  if (digest.version !== VERSION) {
    throw new GryphusError('state-version', `the remaining jobs were stored by another version (${digest.version})`, {
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

export interface MaterializedProcs {
  /** Made one by one as they are read. */
  readonly procs: Iterable<ProcAd>;
  /** Whether the batch includes the cluster's last job. */
  readonly done: boolean;
}

/**
 * Makes jobs of a cluster submitted earlier. Throws GryphusError 'state-version', or 'bad-input' when a job is read.
 */
export function materialize(digest: string, request: MaterializeRequest): MaterializedProcs {
  if (last?.text !== digest) last = { text: digest, opened: open(digest) };
  const { part, base } = last.opened;
  const { cluster, fromProc: from, count } = request;
  return { procs: procsOf([part], base, { cluster, from, count }), done: from + count >= part.run.count };
}
