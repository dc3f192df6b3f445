import type { Core } from './engine/core.ts';
import { STATUS } from './engine/status.ts';
import { type DagGraph, FLAG, KIND, nameOf } from './language/graph.ts';
import { eachCommand } from './language/parse.ts';
import { DEFINITIONS, FOR_THE_MANAGER, MODIFIERS } from './language/syntax.ts';
import { directoryOf, fileNameOf, inDirectory } from './language/names.ts';
import type { Problem } from './language/problem.ts';

const VERSION = '2.1.0';

/** `x.dag.rescue007`; with several DAG files, `x.dag_multi.rescue007`. */
export function rescueName(primary: string, multi: boolean, number: number): string {
  return `${primary}${multi ? '_multi' : ''}.rescue${String(number).padStart(3, '0')}`;
}

/** The number in the name of a rescue file of this DAG; 0 for any other file. */
export function numberOfRescue(file: string, primary: string, multi: boolean): number {
  const stem = rescueName(primary, multi, 0).slice(0, -3);
  return file.startsWith(stem) ? Number.parseInt(file.slice(stem.length), 10) || 0 : 0;
}

export function haltName(primary: string): string {
  return `${primary}.halt`;
}

/** The number of the last rescue file, 0 if there is none. `warn` is told of gaps. */
export function lastRescue(
  exists: (path: string) => boolean,
  primary: string,
  multi: boolean,
  most: number,
  warn: (message: string) => void,
): number {
  let last = 0;
  for (let number = 1; number <= most; number++) {
    if (!exists(rescueName(primary, multi, number))) continue;
    if (number > last + 1) warn(`Warning: Found rescue DAG number ${number}, but not rescue DAG number ${number - 1}`);
    last = number;
  }
  if (last >= most) warn(`Warning: Hit maximum rescue DAG number: ${most}`);
  return last;
}

/** Renames rescue files with higher numbers to `….old` (`-DoRescueFrom n`; `-force` is n = 0). */
export function renameRescuesAfter(
  files: { exists(path: string): boolean; rename(from: string, to: string): void },
  primary: string,
  multi: boolean,
  number: number,
  most: number,
): void {
  const last = lastRescue(
    (path) => files.exists(path),
    primary,
    multi,
    most,
    () => {},
  );
  for (let n = number + 1; n <= last; n++) {
    const name = rescueName(primary, multi, n);
    if (files.exists(name)) files.rename(name, `${name}.old`);
  }
}

/** Where a save point is kept: a bare name goes to `save_files/` next to the DAG, any other path stays as it is. */
export function savePointPath(primary: string, file: string): string {
  if (file !== fileNameOf(file)) return file;
  return inDirectory(directoryOf(primary), `save_files/${file}`);
}

/** The text of a rescue file as DAGMan writes it; `now` is in Unix milliseconds. */
export function rescueText(core: Core, dagFile: string, now: number): string {
  const header = `# Rescue DAG file, created after running\n#   the ${dagFile} DAG file\n`;
  return header + progressText(core, now, core.settings.DAGMAN_RESET_RETRIES_UPON_RESCUE);
}

/** The text of a save file, written when a node starts. */
export function savePointText(core: Core, node: number, now: number): string {
  return `# Save file written at Start Node ${nameOf(core.dag, node)}\n${progressText(core, now, true)}`;
}

function progressText(core: Core, now: number, resetRetries: boolean): string {
  const { dag } = core;
  const failed: string[] = [];
  const lines: string[] = [];
  for (const node of dag.order) {
    const name = nameOf(dag, node);
    if (core.status[node] === STATUS.error) failed.push(`${name},`);
    if (dag.kind[node] !== KIND.final) {
      if (core.status[node] === STATUS.done) lines.push(`DONE ${name}\n`);
      else if (core.status[node] === STATUS.error && onlyWeakChildren(dag, node)) {
        lines.push(`# Failed node with only weak child dependencies:\nDONE ${name}\n`);
      }
    }
    const max = core.retryMax[node] ?? 0;
    if (max > 0 && !resetRetries) {
      const used = core.retries[node] ?? 0;
      const unless = dag.unlessExit.get(node);
      lines.push(`# ${used} of ${max} retries already performed; ${max - used} remaining\n`);
      lines.push(`RETRY ${name} ${max - used}${unless === undefined ? '' : ` UNLESS-EXIT ${unless}`}\n`);
    }
  }
  return (
    `# Created ${created(now)} UTC\n# Rescue DAG version: ${VERSION}\n#\n` +
    `# Total number of Nodes: ${dag.order.length}\n# Nodes premarked DONE: ${core.counts.done}\n` +
    `# Nodes that failed: ${core.counts.failed}\n#   ${failed.join('')}<ENDLIST>\n\n${lines.join('')}`
  );
}

function created(now: number): string {
  const at = new Date(now);
  return `${at.getUTCMonth() + 1}/${at.getUTCDate()}/${at.getUTCFullYear()} ${at.toISOString().slice(11, 19)}`;
}

function onlyWeakChildren(dag: DagGraph, node: number): boolean {
  const { childStart, childWeak } = dag.edges;
  const from = childStart[node] ?? 0;
  const to = childStart[node + 1] ?? 0;
  return childWeak !== undefined && to > from && childWeak.subarray(from, to).every((weak) => weak === 1);
}

/**
 * Marks in `dag` the nodes that a rescue or save file says are done, and sets their remaining retries. Such a file
 * contains only DONE and RETRY.
 */
export function applyRescue(dag: DagGraph, text: string, file: string): readonly Problem[] {
  const problems: Problem[] = [];
  const report = (problem: Problem): void => void problems.push(problem);
  const all = new Set([...DEFINITIONS, ...MODIFIERS, ...FOR_THE_MANAGER]);
  eachCommand(text, file, all, report, (command, line) => {
    const complain = (message: string, remedy: string): void =>
      report({ file, line, severity: 'error', message, remedy });
    if (command.cmd !== 'done' && command.cmd !== 'retry') {
      complain('A rescue file can contain only DONE and RETRY commands', 'Put other commands into the DAG file.');
      return;
    }
    const node = dag.byName.get(command.node);
    if (node === undefined) {
      const remedy = `The DAG has changed since ${file} was written: remove that line, or start over with -force.`;
      complain(`References undefined node ${command.node}`, remedy);
    } else if (command.cmd === 'done') dag.flags[node] = (dag.flags[node] ?? 0) | FLAG.finished;
    else dag.retryMax[node] = command.max;
  });
  return problems;
}
