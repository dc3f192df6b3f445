import { GryphusError } from '../errors.ts';
import { parseDependency } from '../job/dependency.ts';
import { quoted } from '../job/values.ts';
import { printArgsV2, printEnvV2 } from '../submit/api.ts';
import { amountOf } from './amounts.ts';
import { indexRows, queueStatement } from './array.ts';
import type { System, Wishes, Written } from './model.ts';
import { defaultOutput, fileName, LINE_END, isNumbered, literal, type Marks, namesNode } from './patterns.ts';
import type { BatchScript } from './read.ts';
import { DIALECTS } from './read.ts';
import { type Value, VARIABLES } from './variables.ts';

/** Where the jobs go. */
export interface Destination {
  readonly kind: 'pool' | 'site';
  readonly name: string;
  /** The site's batch system. */
  readonly batch: string;
  /** Whether jobs run in place, because the site has this machine's files. */
  readonly shared: boolean;
}

/** Who submits, where. Paths are absolute. */
export interface Submitter {
  readonly cwd: string;
  readonly home: string;
  readonly user: string;
  readonly uid: number;
  readonly host: string;
  readonly path: string;
  readonly shell: string;
}

export interface Wanted {
  /** The program that runs: the script itself, or the copy that the agent keeps. */
  readonly executable: string;
  /** The script's own name, without directories. */
  readonly fileName: string;
  readonly args: readonly string[];
  /** Files that are sent with it where it does not run in place. */
  readonly input?: readonly string[];
  readonly to: Destination;
  readonly by: Submitter;
}

export interface Translation {
  /** A submit description. */
  readonly text: string;
  /** What its language cannot express. */
  readonly attributes: Readonly<Record<string, string>>;
  readonly warnings: readonly { readonly line?: number; readonly message: string }[];
}

/** The systems that a site's batch system is one of. */
const FAMILY: Readonly<Record<string, System>> = { slurm: 'slurm', pbs: 'pbs', torque: 'pbs', sge: 'sge', lsf: 'lsf' };

/**
 * The submit description that means what the script's directives mean. Throws GryphusError 'bad-input' if the jobs
 * could not run as the script wants.
 */
export function describeScript(script: BatchScript, wanted: Wanted): Translation {
  const { system, wishes } = script;
  const { to, by } = wanted;
  const native = system !== undefined && to.kind === 'site' && FAMILY[to.batch] === system;
  const name = nameOf(script, wanted);
  const amount = amountOf(wishes, native, to, system);
  const isArray = wishes.array !== undefined;
  const marks: Marks = {
    array: '$(Cluster)',
    job:
      system === 'pbs'
        ? `$(Cluster)${isArray ? '[$(array_index)]' : ''}.gryphus`
        : isArray
          ? '$INT(array_job)'
          : '$(Cluster)',
    index: isArray ? '$(array_index)' : (NO_INDEX[system ?? 'slurm'] ?? '0'),
    ...(isArray ? { indexMacro: 'array_number' } : {}),
    jobMacro: isArray ? 'array_job' : 'Cluster',
    name: literal(name),
    user: literal(by.user),
    home: literal(by.home),
    node: literal(nodeOf(wanted)),
  };
  mustBeNew(script);
  const place = startOf(script, wanted);
  const gang = to.kind === 'pool' && (wishes.nodes ?? 1) > 1;
  const args = gang ? ['-c', AT_FIRST_NODE, wanted.executable, ...wanted.args] : wanted.args;
  const odd = args.some((arg) => LINE_END.test(arg));
  const lines = [
    `executable = ${gang ? '/bin/sh' : literal(wanted.executable)}`,
    ...(args.length === 0 || odd ? [] : [`arguments = ${v2(printArgsV2(args))}`]),
    ...(gang ? ['universe = parallel', 'should_transfer_files = NO'] : []),
    ...(to.kind === 'pool' ? [] : ['universe = grid', `grid_resource = batch ${to.batch} ${to.name}`]),
    ...(to.kind === 'site' && to.shared ? ['should_transfer_files = NO'] : []),
    ...(to.kind === 'site' && !to.shared ? inputLines(wanted.input) : []),
    `initialdir = ${literal(place)}`,
    `batch_name = ${literal(name)}`,
    ...(system === undefined ? [] : [`+GryphusScript = "${system}"`]),
    ...amount.lines,
    ...(wishes.seconds === undefined ? [] : [`batch_runtime = ${wishes.seconds}`]),
    ...streamLines(script, marks, by),
    ...mailLines(wishes),
    ...siteLines(wishes, native, amount.words),
    ...(native || wishes.project === undefined ? [] : [`+GryphusAccount = ${adString(wishes.project)}`]),
    ...dependencyLines(wishes),
    ...(wishes.held ? ['hold = true'] : []),
    ...(native ? [] : timeLines(wishes)),
    ...(wishes.warning && to.kind === 'pool' ? [warningLine(wishes.warning)] : []),
    ...(wishes.priority === undefined ? [] : [`priority = ${wishes.priority}`]),
    ...(wishes.comment === undefined ? [] : [`+JobDescription = ${adString(wishes.comment)}`]),
    ...(wishes.wholeNode && to.kind === 'site' ? ['+WholeNodes = true'] : []),
    ...environmentLines(script, { wanted, native, name, marks, cpus: amount.cpus, nodes: wishes.nodes ?? 1 }),
    ...(wishes.array === undefined ? [] : indexRows(wishes.array)),
    queueStatement(wishes.array),
  ];
  const attributes = odd ? { Arguments: quoted(printArgsV2(args)) } : {};
  return {
    text: `${lines.join('\n')}\n`,
    attributes,
    warnings: [...script.warnings, ...warningsOf(script, native, wanted)],
  };
}

/** Output replaces a file; with the job's number in its name, that is a new one. */
function mustBeNew({ system, wishes, file }: BatchScript): void {
  const { append, array, output, error } = wishes;
  if (append === undefined) return;
  for (const pattern of [output, error]) {
    if (pattern === undefined || isNumbered(system, pattern, array !== undefined)) continue;
    const at = append.line > 0 ? `on Line ${append.line} of ${file}: ` : '';
    throw new GryphusError('bad-input', `${at}${append.option}: the job would replace ${pattern}, and not add to it`, {
      suggestions: ["Leave it out, or put the job's number into its name (%j)."],
    });
  }
}

/** How a shell at each node of a parallel job becomes a script of several nodes; `$0` is the script. */
const AT_FIRST_NODE = 'exec "$GRYPHUS_LAUNCHERS/batchscript" "$0" "$@"';

/** What the systems write for the index of a job that has none. */
const NO_INDEX: Readonly<Record<System, string>> = { slurm: '4294967294', pbs: '', sge: 'undefined', lsf: '0' };

function nameOf({ wishes }: BatchScript, { fileName: file }: Wanted): string {
  return wishes.name === undefined || wishes.name === '' ? file : wishes.name;
}

/** Relative names of files mean this directory. */
function startOf({ system, wishes }: BatchScript, { to, by }: Wanted): string {
  const start = wishes.directory ?? (system === undefined ? 'submit' : DIALECTS[system].startsIn);
  if (typeof start === 'object') return start.path.startsWith('/') ? start.path : `${by.cwd}/${start.path}`;
  // Results come home into this directory; a home directory is not the place for them.
  const inPlace = to.kind === 'pool' || to.shared;
  return start === 'home' && inPlace ? by.home : by.cwd;
}

function streamLines({ system, wishes }: BatchScript, marks: Marks, by: Submitter): string[] {
  const usual = defaultOutput(system, wishes, marks);
  // PBS writes where the job was submitted, wherever it runs.
  const at = (path: string) => (system === 'pbs' && !path.startsWith('/') ? `${literal(by.cwd)}/${path}` : path);
  const named = (pattern: string | undefined, instead: string | undefined) => {
    if (pattern === undefined) return instead;
    const name = fileName(system, pattern, marks);
    return name.endsWith('/') && instead !== undefined ? `${name}${instead}` : name;
  };
  const output = named(wishes.output, wishes.join === 'error' ? undefined : usual.output);
  const joined = wishes.join === 'output' || (wishes.error === undefined && (system === 'slurm' || system === 'lsf'));
  const error = joined ? output : named(wishes.error, usual.error);
  const first = wishes.join === 'error' ? error : output;
  return [
    ...(wishes.input === undefined ? [] : [`input = ${at(fileName(system, wishes.input, marks))}`]),
    ...(first === undefined ? [] : [`output = ${at(first)}`]),
    ...(error === undefined ? [] : [`error = ${at(error)}`]),
  ];
}

function inputLines(files: readonly string[] = []): string[] {
  return files.length === 0 ? [] : [`transfer_input_files = ${files.map(literal).join(', ')}`];
}

const NOTIFICATION = { never: 'Never', end: 'Complete', error: 'Error', always: 'Always' } as const;

function mailLines({ mail, mailUser }: Wishes): string[] {
  return [
    ...(mail === undefined ? [] : [`notification = ${NOTIFICATION[mail]}`]),
    ...(mailUser === undefined ? [] : [`notify_user = ${literal(mailUser)}`]),
  ];
}

function siteLines(wishes: Wishes, native: boolean, more: readonly string[]): string[] {
  if (!native) return [];
  const words = [...more, ...wishes.siteWords];
  return [
    ...(wishes.queue === undefined ? [] : [`batch_queue = ${literal(wishes.queue)}`]),
    ...(wishes.project === undefined ? [] : [`batch_project = ${literal(wishes.project)}`]),
    ...(words.length === 0 ? [] : [`batch_extra_submit_args = ${words.map(quotedWord).join(' ')}`]),
  ];
}

function quotedWord(word: string): string {
  const plain = /^[\w./:@%+,=-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
  return literal(plain);
}

function dependencyLines({ dependency, removeInvalid }: Wishes): string[] {
  if (dependency === undefined) return [];
  // Its syntax is checked here, where the script is at hand.
  parseDependency(dependency);
  return [
    'hold = true',
    `+HoldReason = ${adString(`waits for ${dependency}`)}`,
    `+GryphusDependency = ${adString(dependency)}`,
    ...(removeInvalid ? ['+GryphusDependencyRemoves = true'] : []),
  ];
}

/** The hold of `--begin` is released by itself, that of a dependency when both are as they should. */
function timeLines({ begin, deadline, seconds, dependency, held }: Wishes): string[] {
  const lines: string[] = [];
  const earliest = Math.max(begin ?? 0, Math.floor(Date.now() / 1000));
  // As in Slurm, such a job never starts.
  const tooLong = deadline !== undefined && earliest + (seconds ?? 0) > deadline;
  if (tooLong) lines.push('hold = true', '+HoldReason = "DeadLine"');
  else if (begin !== undefined && !held) {
    lines.push(`+GryphusBegin = ${begin}`, `periodic_release = GryphusDependency =?= undefined && time() >= ${begin}`);
    if (dependency === undefined) lines.push('hold = true', '+HoldReason = "BeginTime"');
  }
  if (deadline !== undefined) {
    const late = seconds === undefined ? '' : ` || (JobStatus != 2 && time() + ${seconds} > ${deadline})`;
    lines.push(`periodic_remove = time() >= ${deadline}${late}`, '+PeriodicRemoveReason = "DeadLine"');
  }
  return lines;
}

function warningLine({ signal, seconds, shell }: NonNullable<Wishes['warning']>): string {
  return `+GryphusSignal = "${shell ? 'B:' : ''}${signal}@${seconds}"`;
}

function adString(text: string): string {
  return `"${literal(text.replaceAll('\\', '\\\\').replaceAll('"', '\\"'))}"`;
}

/** In the form that a value of `arguments` and `environment` has between its double quotes. */
function v2(text: string): string {
  return `"${literal(text).replaceAll('"', '""')}"`;
}

interface Surroundings {
  readonly wanted: Wanted;
  readonly native: boolean;
  readonly name: string;
  readonly marks: Marks;
  readonly cpus: number;
  readonly nodes: number;
}

function environmentLines(
  { system, wishes }: BatchScript,
  { wanted, native, name, marks, cpus, nodes }: Surroundings,
): string[] {
  const { to, by } = wanted;
  const here = to.kind === 'pool' || to.shared;
  const facts = { wishes, by, to, name, cpus, nodes, job: marks.job, index: marks.index };
  const set = new Map<string, Value>();
  for (const one of system === undefined ? [] : VARIABLES[system]) {
    const value = native && !one.native ? undefined : one.value(facts);
    if (value !== undefined) set.set(one.name, value);
  }
  for (const [variable, value] of wishes.variables) set.set(variable, { text: value });
  const words = [...set].map(([variable, value]) => {
    if ('macro' in value) return `${variable}=${value.macro}`;
    return literal(printEnvV2(new Map([[variable, value.text]]))).replaceAll('"', '""');
  });
  const taken = [...wishes.taken];
  const getenv = wishes.environment === 'all' && here ? 'true' : taken.join(',');
  return [
    ...(getenv === '' ? [] : [`getenv = ${getenv}`]),
    ...(words.length === 0 ? [] : [`environment = "${words.join(' ')}"`]),
  ];
}

/** What output files are named after instead of their job's node: this machine, or the site. */
function nodeOf({ to, by }: Wanted): string {
  return to.kind === 'pool' || to.shared ? (by.host.split('.')[0] ?? '') : to.name;
}

function warningsOf({ system, wishes }: BatchScript, native: boolean, wanted: Wanted): Translation['warnings'] {
  const { to } = wanted;
  const at = ({ line }: { readonly line: number }) => (line > 0 ? { line } : {});
  const where = to.kind === 'pool' ? 'the pool' : `site ${to.name} (${to.batch})`;
  const title = system === undefined ? '' : DIALECTS[system].title;
  return [
    ...wishes.without.map((one) => ({ ...at(one), message: `${one.option} has no effect: ${one.why}.` })),
    ...(native
      ? []
      : wishes.siteOnly.map((one) => ({
          ...at(one),
          message: `${one.option} has no effect in ${where}: it is for a site that runs ${title}.`,
        }))),
    ...(wishes.begin !== undefined && wishes.held && !native
      ? [{ message: '--begin has no effect on a job that is held: it may start when you release it.' }]
      : []),
    ...(wishes.warning === undefined || native || (to.kind === 'pool' && wishes.seconds !== undefined)
      ? []
      : [{ ...at(wishes.warning), message: noSignal(wishes.warning, to.kind === 'pool', where) }]),
    ...(to.kind === 'pool' && wishes.queue !== undefined
      ? [
          {
            message: `The queue ${JSON.stringify(wishes.queue)} has no effect: the pool has none, and no site has this name.`,
          },
        ]
      : []),
    ...[wishes.output, wishes.error]
      .filter((pattern) => namesNode(system, pattern))
      .map((pattern) => ({
        message: `${pattern}: %N is ${nodeOf(wanted)} here: the node is known only when the job runs.`,
      })),
    ...(system === 'lsf' && wishes.output === undefined
      ? [{ message: 'LSF would mail the output; here it goes to a file lsf-ID.out.' }]
      : []),
  ];
}

function noSignal({ option }: Written, inPool: boolean, where: string): string {
  const why = inPool ? 'the job has no time limit (--time)' : 'only the pool and Slurm can send it';
  return `${option} has no effect in ${where}: ${why}.`;
}
