import { GryphusError } from '../errors.ts';
import { texts } from './attributes.ts';
import type { Cluster, ClusterPart } from './cluster.ts';
import { procsOf, refuseMissing } from './cluster.ts';
import { Complaints } from './complaints.ts';
import { allSteps } from './commands/all.ts';
import { setBase } from './commands/base.ts';
import { defaultMacros } from './defaults.ts';
import { writeDigest } from './digest.ts';
import type { Attributes } from './draft.ts';
import { Draft } from './draft.ts';
import { Expander } from './expand.ts';
import type { SourcePlace, SubmitWarning } from './fault.ts';
import { badInput } from './fault.ts';
import { JobRun } from './job-run.ts';
import type { LateMaterialization } from './late.ts';
import { lateMaterialization } from './late.ts';
import { MacroTable } from './macros.ts';
import type { ClusterKind, MakerScope } from './maker.ts';
import { Missing } from './missing.ts';
import type { MachineFacts, SubmitPolicy } from './options.ts';
import { DEFAULT_MACHINE, DEFAULT_POLICY } from './options.ts';
import { queueArguments } from './queue-args.ts';
import type { QueuePlan } from './queue-items.ts';
import { planQueue } from './queue-items.ts';
import type { QueueStatement, ReadScope } from './read.ts';
import { DescriptionReader, readAppended } from './read.ts';
import { isMacroName } from './text.ts';
import { unusedWarnings } from './unused.ts';
import type { SubmitWorld } from './world.ts';

export interface ParseRequest {
  readonly text: string;
  /** Its file name as given, for messages and JobSubmitFile; absent if it was read from standard input. */
  readonly file?: string;
  /** The directory to which relative names refer, absolute. */
  readonly cwd: string;
  readonly world: SubmitWorld;
  readonly owner: string;
  /** Unix seconds. */
  readonly now: number;
  /** $(Cluster) if it is already known; 1 by default. */
  readonly cluster?: number;
  /** `name=value` definitions that precede the description. */
  readonly assignments?: readonly string[];
  /** Lines read after the description, which they override (-append). */
  readonly appends?: readonly string[];
  /** What would follow the word queue, for a description without a queue statement (-queue). */
  readonly queueArgs?: string;
  readonly batchName?: string;
  /** JobBatchId (-batch-id). */
  readonly batchId?: string;
  /** Late materialization even if the description does not ask for it (-factory). */
  readonly factory?: boolean;
  /** Refuse a cluster with more jobs (-maxjobs). */
  readonly maxJobs?: number;
  /** Warn about definitions that are never used; true by default (-unused turns it off). */
  readonly warnUnused?: boolean;
  readonly machine?: Partial<MachineFacts>;
  readonly policy?: Partial<SubmitPolicy>;
  /** HTCondor's JobSubmitMethod; 0, the command, by default. */
  readonly method?: number;
}

function assign(text: string, macros: MacroTable, expander: Expander): void {
  const equals = text.indexOf('=');
  const name = text.slice(0, Math.max(equals, 0)).trim();
  if (!isMacroName(name)) {
    throw new GryphusError('usage', `invalid attribute name '${name}' for attrib=value assigment`, {
      suggestions: ['Write NAME=VALUE; an attribute of your own is MY.NAME=VALUE.'],
    });
  }
  const value = expander.expandSelf(text.slice(equals + 1).trim(), name);
  macros.define(name, value, { file: '<argument>', line: 0 }, 'argument');
}

function appendedLines(request: ParseRequest): string[] {
  const { appends = [], batchName, batchId } = request;
  const lines = appends.filter((line) => queueArguments(line) === undefined);
  const string = (text: string) => (text.startsWith('"') ? text : `"${text.replaceAll('"', '\\"')}"`);
  return [
    ...lines,
    ...(batchName === undefined ? [] : [`MY.JobBatchName = ${string(batchName)}`]),
    ...(batchId === undefined ? [] : [`MY.JobBatchId = ${string(batchId)}`]),
  ];
}

/** The queue arguments given outside the description; an appended queue statement counts too (-append). */
function givenQueue({ queueArgs, appends = [] }: ParseRequest): string | undefined {
  const statements = appends.flatMap((line) => queueArguments(line) ?? []);
  const given = [...(queueArgs === undefined ? [] : [queueArgs]), ...statements];
  if (given.length > 1) throw new GryphusError('usage', 'only one -queue command allowed');
  return given[0];
}

/** Reads a description statement by statement and makes the first job of each. */
class SubmitParser {
  readonly #request: ParseRequest;
  readonly #macros: MacroTable;
  readonly #warnings: SubmitWarning[] = [];
  readonly #complaints = new Complaints();
  readonly #missing: Missing;
  readonly #scope: MakerScope;
  readonly #readScope: ReadScope;
  readonly #reader: DescriptionReader;
  readonly #parts: ClusterPart[] = [];
  readonly #kind: ClusterKind = { universe: 0, docker: false, container: false };
  #base: Attributes = new Map();
  #statements = 0;
  #total = 0;
  readonly #given: string | undefined;
  #late: LateMaterialization | undefined;

  constructor(request: ParseRequest) {
    this.#request = request;
    this.#given = givenQueue(request);
    const { cwd, world, file, now } = request;
    this.#missing = new Missing(world);
    const machine = { ...DEFAULT_MACHINE, ...request.machine };
    this.#macros = new MacroTable(defaultMacros(machine, now, file));
    this.#scope = this.#makerScope(this.#macros, {
      world,
      cwd,
      machine,
      policy: { ...DEFAULT_POLICY, ...request.policy },
      file,
      now,
      seen: new Map(),
      late: false,
      complaints: this.#complaints,
      missing: this.#missing,
      warn: (message, line) => this.#warn({ message, ...(line === undefined || line < 1 ? {} : { line }) }),
    });
    const { expander } = this.#scope;
    for (const text of request.assignments ?? []) assign(text, this.#macros, expander);
    this.#readScope = { macros: this.#macros, expander, world, warnings: this.#warnings, cwd };
    this.#reader = new DescriptionReader(request.text, file ?? '<stdin>', this.#readScope);
  }

  #warn(warning: SubmitWarning): void {
    if (!this.#warnings.some(({ message }) => message === warning.message)) this.#warnings.push(warning);
  }

  #makerScope(macros: MacroTable, rest: Omit<MakerScope, 'macros' | 'expander'>): MakerScope {
    const expander: Expander = new Expander({
      macros,
      cwd: rest.cwd,
      env: (name) => {
        const value = rest.world.environment[name];
        if (value !== undefined) rest.seen.set(name, value);
        return value;
      },
      random: () => rest.world.random(),
      complain: (message) => rest.complaints.add(message, expander.place?.line),
    });
    return { ...rest, macros, expander };
  }

  run(): Cluster {
    let line = this.#next();
    if (!line) this.#queue(this.#impliedLine());
    else if (this.#given !== undefined) {
      throw badInput(line.place, '-queue argument conflicts with queue statement in submit file', [
        'Leave one of them out.',
      ]);
    }
    for (; line; line = this.#next()) this.#queue(line);
    this.#finish();
    return this.#cluster();
  }

  /** The next queue statement of the description, after reading the appended lines. */
  #next(): QueueStatement | undefined {
    const line = this.#reader.next();
    if (line && this.#late) {
      throw badInput(line.place, 'Extra data found after queue statement', [
        'With max_materialize, max_idle or -factory there is one queue statement, the last line of the file.',
      ]);
    }
    if (line || this.#statements === 0) readAppended(appendedLines(this.#request), this.#readScope);
    return line;
  }

  #impliedLine(): QueueStatement {
    const given = this.#given;
    const text = given === undefined ? '' : (queueArguments(given) ?? given);
    const file = given === undefined ? this.#reader.reader.file : '<-queue>';
    return { text, place: { file, line: Math.max(this.#reader.reader.line, 1) } };
  }

  #queue(line: QueueStatement): void {
    const plan = planQueue(line, this.#reader.reader, this.#readScope);
    if (this.#statements++ === 0) {
      this.#late = lateMaterialization(this.#macros, this.#scope.expander, this.#request.factory ?? false);
      if (this.#late) this.#refuseMore();
    } else {
      this.#warn({
        line: line.place.line,
        message: 'Use of multiple queue statements in a single submit file is deprecated.',
      });
    }
    this.#make(plan, line.place);
  }

  #refuseMore(): void {
    const { reader } = this.#reader;
    for (let more = reader.next(); more; more = reader.next()) {
      if (more.text === '' || more.text.startsWith('#')) continue;
      throw badInput({ file: reader.file, line: more.line }, 'Extra data found after queue statement', [
        'With max_materialize, max_idle or -factory the queue statement is the last line of the file.',
      ]);
    }
  }

  #make(plan: QueuePlan, place: SourcePlace): void {
    for (const name of plan.vars) this.#macros.setLive(name, '', place);
    const steps = allSteps(this.#macros, this.#request.owner);
    const run = new JobRun({ plan, place, kind: this.#kind, steps, firstProc: this.#total });
    if (run.count === 0) return;
    const { maxJobs = 0 } = this.#request;
    if (maxJobs > 0 && this.#total + run.count > maxJobs) {
      throw badInput(place, `Number of submitted jobs would exceed -maxjobs (${maxJobs})`);
    }
    this.#refuseTooMany(run.count, place);
    const isFirst = this.#parts.length === 0;
    const draft = new Draft(isFirst ? undefined : this.#base);
    const cluster = this.#request.cluster ?? 1;
    if (isFirst) {
      const { owner, now, method = 0 } = this.#request;
      setBase(draft, { owner, now, cluster, method });
    }
    run.first(this.#scope, draft, cluster);
    if (isFirst) this.#base = new Map([...draft.own].filter(([key]) => key !== 'procid'));
    this.#parts.push({ run, scope: this.#makerScope(this.#macros.clone(), this.#scope) });
    for (const name of plan.vars) this.#macros.setLive(name, '<Queue_item>', place);
    this.#total += run.count;
  }

  #refuseTooMany(count: number, place: SourcePlace): void {
    const { mostJobs } = this.#scope.policy;
    if (this.#late || this.#total + count <= mostJobs) return;
    throw badInput(place, `${this.#total + count} jobs are more than one submit may queue, ${mostJobs}`, [
      'Write max_materialize = 10000: jobs are then materialized as earlier ones leave the queue, and their number is not limited.',
      'Or raise the limit: gryphus config submit.max_jobs NUMBER',
    ]);
  }

  #finish(): void {
    if (this.#missing.any) refuseMissing(this.#parts, this.#base, this.#missing);
    if (this.#total === 0) {
      const file = this.#request.file ?? '(stdin)';
      this.#warn({ message: `"${file}" has only empty "queue" commands -- no jobs queued` });
    } else if (this.#request.warnUnused ?? true) {
      for (const warning of unusedWarnings(this.#macros)) this.#warn(warning);
    }
  }

  #cluster(): Cluster {
    const parts = this.#parts;
    const base = this.#base;
    const total = this.#total;
    const known = this.#request.cluster ?? 1;
    const { owner } = this.#request;
    const warnings = this.#warnings;
    const complaints = this.#complaints;
    return {
      clusterAd: texts(base),
      total,
      get warnings() {
        return [...warnings, ...complaints.warnings];
      },
      late: this.#late,
      lineOf: (names) => {
        const macro = names.map((name) => this.#macros.find(name)).find((one) => one !== undefined);
        if (macro === undefined || macro.origin === 'internal') return undefined;
        return macro.origin === 'file' ? macro.place.line : 0;
      },
      procs: ({ cluster = known, from = 0, count = total } = {}) => procsOf(parts, base, { cluster, from, count }),
      digest: () => {
        const [part] = parts;
        if (!part || parts.length > 1) throw new GryphusError('internal', 'a digest covers one queue statement');
        return writeDigest(part, base, owner);
      },
    };
  }
}

/**
 * Makes the jobs of a submit description. Throws GryphusError 'bad-input' (file and line in the message, the remedy in
 * the suggestions), or 'usage' for a malformed assignment.
 */
export function parseSubmit(request: ParseRequest): Cluster {
  return new SubmitParser(request).run();
}
