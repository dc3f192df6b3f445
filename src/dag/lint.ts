import { cycleProblems } from './cycles.ts';
import {
  type DagGraph,
  descriptionOf,
  directoryOf,
  FLAG,
  isNoop,
  nameOf,
  parentsOf,
  placeOf,
} from './language/graph.ts';
import type { NodeVar, ScriptType } from './language/commands.ts';
import type { LoadedDag } from './language/load.ts';
import { inDirectory } from './language/names.ts';
import type { Problem } from './language/problem.ts';

/** What lint reads besides the DAG; paths are as in the DAG. */
export interface LintFiles {
  read(path: string): string | undefined;
  exists(path: string): boolean;
  executable(path: string): boolean;
  /** Whether a name is a submit command, which VARS may set even if no macro uses it. */
  isSubmitCommand(name: string): boolean;
}

/**
 * Finds all that is wrong or suspicious in a DAG before any of it runs: problems found by the parser, cycles, missing
 * files and scripts, scripts that are not executable, and unused VARS. If an earlier node, or the node's own PRE
 * script, may still create a missing file, that is only a warning.
 */
export function lintDag(loaded: LoadedDag, files: LintFiles): readonly Problem[] {
  const problems: Problem[] = [...loaded.problems, ...cycleProblems(loaded.dag)];
  const { dag } = loaded;
  const reported = new Set<string>();
  const used = new Map<string, boolean>();
  for (let node = 0; node < dag.size; node++) {
    if (isNoop(dag, node) || isDone(dag, node)) continue;
    for (const problem of [...missingFiles(dag, node, files), ...scriptProblems(dag, node, files)]) {
      // Thousands of nodes may share a file, but one report is enough.
      const key = `${problem.severity} ${problem.message}`;
      if (reported.has(key)) continue;
      reported.add(key);
      problems.push(problem);
    }
    problems.push(...unusedVars(dag, node, files, used));
  }
  return problems;
}

/** Whether nothing in the DAG runs before the node. */
function beginsAtOnce(dag: DagGraph, node: number): boolean {
  return parentsOf(dag, node).every((parent) => isDone(dag, parent)) && node !== dag.final;
}

function isDone(dag: DagGraph, node: number): boolean {
  return ((dag.flags[node] ?? 0) & (FLAG.done | FLAG.finished)) !== 0;
}

function missingFiles(dag: DagGraph, node: number, files: LintFiles): readonly Problem[] {
  const directory = directoryOf(dag, node);
  const early = beginsAtOnce(dag, node) && dag.scripts.get(node)?.PRE === undefined;
  const severity = early ? 'error' : 'warning';
  const name = nameOf(dag, node);
  if (directory !== '' && !files.exists(directory)) {
    const remedy = `Make ${directory}, or correct the DIR of ${name}.`;
    return [
      { ...placeOf(dag, node), severity, message: `The directory ${directory} of node ${name} does not exist`, remedy },
    ];
  }
  const description = descriptionOf(dag, node);
  if (description.is === 'text') return [];
  const path = inDirectory(directory, description.file);
  if (files.exists(path)) return [];
  const what = description.is === 'dag' ? 'DAG file' : 'submit file';
  return [
    {
      ...placeOf(dag, node),
      severity,
      message: `The ${what} ${path} of node ${name} does not exist`,
      remedy: early ? `Write ${path}, or correct its name.` : 'It must exist when the node starts.',
    },
  ];
}

function scriptProblems(dag: DagGraph, node: number, files: LintFiles): readonly Problem[] {
  const scripts = dag.scripts.get(node);
  if (scripts === undefined) return [];
  const found: Problem[] = [];
  for (const type of ['PRE', 'POST', 'HOLD'] as const satisfies readonly ScriptType[]) {
    const program = scripts[type]?.command.split(/[ \t]+/)[0];
    if (program === undefined || program.startsWith('$')) continue;
    const path = inDirectory(directoryOf(dag, node), program);
    const early = type === 'PRE' && beginsAtOnce(dag, node);
    const say = (severity: Problem['severity'], what: string, remedy: string): void => {
      found.push({ ...placeOf(dag, node), severity, message: `The ${type} script ${path} ${what}`, remedy });
    };
    if (!files.exists(path)) {
      say(early ? 'error' : 'warning', 'does not exist', 'Its node would fail; PATH is not searched for scripts.');
    } else if (!files.executable(path)) say('error', 'is not executable', `Run: chmod +x ${path}`);
  }
  return found;
}

function unusedVars(dag: DagGraph, node: number, files: LintFiles, used: Map<string, boolean>): readonly Problem[] {
  const vars = dag.vars.get(node);
  if (vars === undefined) return [];
  const found: Problem[] = [];
  const key = `${dag.submit[node]} ${dag.directory[node]}`;
  let text: string | undefined;
  for (const variable of vars) {
    const name = variable.name.toLowerCase();
    const known = `${key} ${name}`;
    if (used.has(known)) continue;
    text ??= descriptionText(dag, node, files) ?? '';
    const isUsed = text === '' || name.startsWith('my.') || files.isSubmitCommand(name) || mentions(text, vars, name);
    used.set(known, isUsed);
    if (isUsed) continue;
    const message = `VARS ${variable.name} of node ${nameOf(dag, node)} is not used by its submit description`;
    const remedy = `Use $(${variable.name}) there, or remove it here.`;
    found.push({ ...placeOf(dag, node), severity: 'warning', message, remedy });
  }
  return found;
}

function descriptionText(dag: DagGraph, node: number, files: LintFiles): string | undefined {
  const description = descriptionOf(dag, node);
  if (description.is === 'text') return description.text;
  return description.is === 'file' ? files.read(inDirectory(directoryOf(dag, node), description.file)) : undefined;
}

/** Looks for `$(name)`, `$(name:…)`, `$INT(name)` or `if defined name` in the description and in other variables. */
function mentions(text: string, vars: readonly NodeVar[], name: string): boolean {
  const escaped = name.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const pattern = new RegExp(`\\(\\s*${escaped}\\s*[):,]|defined\\s+${escaped}\\b`, 'i');
  return pattern.test(text) || vars.some((v) => v.name.toLowerCase() !== name && pattern.test(v.value));
}
