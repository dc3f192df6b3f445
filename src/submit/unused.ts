import { editDistance } from '../util/did-you-mean.ts';
import { CATALOGUE, isSubmitCommand } from './catalogue.ts';
import type { SubmitWarning } from './fault.ts';
import type { Macro, MacroTable } from './macros.ts';

/** The commands that a misspelt one may stand for. */
const COMMANDS = CATALOGUE.map(({ name }) => name).filter((name) => !name.startsWith('+'));

/** Never reported as unused: set by DAGs and templates, or meant for interactive jobs. */
const NEVER_NAMED = new Set([
  'dag_status',
  'failed_count',
  'interactive_args',
  'interactive_executable',
  'job',
  'retry',
]);

/** The command closest to a name, if any is close. */
export function nearestCommand(name: string): string | undefined {
  const wanted = name.toLowerCase();
  const most = wanted.length < 5 ? 1 : 2;
  const near = COMMANDS.filter((command) => Math.abs(command.length - wanted.length) <= most)
    .map((command) => ({ command, distance: editDistance(wanted, command.toLowerCase()) }))
    .filter(({ distance }) => distance <= most)
    .sort((a, b) => a.distance - b.distance);
  return near[0]?.command;
}

/** Commands that say where a job of the grid universe goes, and how it is queued there. */
const GRID_ONLY: ReadonlySet<string> = new Set(
  'grid_resource batch_queue batch_project batch_extra_submit_args machine_count ranks_per_node whole_nodes'.split(' '),
);

function warningFor(macro: Macro): SubmitWarning {
  if (macro.origin === 'loop') {
    return {
      line: macro.place.line,
      message: `the Queue variable '${macro.name}' was unused by gryphus submit. Is it a typo?`,
    };
  }
  const line = `the line '${macro.name} = ${macro.value}' was unused by gryphus submit.`;
  const meant = nearestCommand(macro.name);
  const hint = meant === undefined ? '' : ` Did you mean '${meant}'?`;
  const text = isSubmitCommand(macro.name)
    ? `${line} It has no effect for such a job.${GRID_ONLY.has(macro.name.toLowerCase()) ? ' → universe = grid' : ''}`
    : `${line} Is it a typo?${hint}`;
  return { message: text, ...(macro.origin === 'file' ? { line: macro.place.line } : {}) };
}

/** Definitions that were never used. Names with a dot and the user's own attributes are not reported. */
export function unusedWarnings(macros: MacroTable): SubmitWarning[] {
  return macros
    .all()
    .filter(({ name, used, origin }) => {
      return !used && origin !== 'internal' && !name.includes('.') && !NEVER_NAMED.has(name.toLowerCase());
    })
    .map(warningFor)
    .sort((a, b) => (a.line ?? 0) - (b.line ?? 0));
}
