import { SIMPLE_COMMANDS } from './commands/simple.ts';
import type { Warning } from './fault.ts';
import type { Macro, MacroTable } from './macros.ts';

/** Commands that are not put into the ad as they stand: what a misspelt one may have been meant to be. */
const OTHERS = `accounting_group accounting_group_user arguments batch_extra_submit_args batch_project batch_queue
  batch_runtime concurrency_limits container_image cron_window deferral_prep_time deferral_time deferral_window disk_usage
  docker_image environment error executable getenv globus_rsl gpus_maximum_capability gpus_minimum_capability
  gpus_minimum_memory gpus_minimum_runtime grid_resource hold image_size initialdir input kill_sig leave_in_queue max_materialize max_retries
  nice_user notification on_exit_hold on_exit_hold_reason on_exit_hold_subcode on_exit_remove output periodic_hold
  periodic_hold_reason periodic_hold_subcode periodic_release periodic_remove periodic_vacate rank request_cpus
  request_disk request_gpus request_memory require_gpus requirements retry_until shell should_transfer_files
  skip_filechecks stream_error stream_input stream_output success_exit_code transfer_executable transfer_input_files
  transfer_output_files transfer_output_remaps universe use_x509userproxy when_to_transfer_output
  x509userproxy`.split(/\s+/);

const COMMANDS = [...SIMPLE_COMMANDS.map(({ name }) => name), ...OTHERS];

export function isSubmitCommand(name: string): boolean {
  return COMMANDS.includes(name.toLowerCase());
}

/** Set by DAGs and templates, or meant for interactive jobs: used or not. */
const NEVER_NAMED = new Set([
  'dag_status',
  'failed_count',
  'interactive_args',
  'interactive_executable',
  'job',
  'retry',
]);

/** How many letters to insert, delete, change or swap (Damerau–Levenshtein, restricted). */
export function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let best = Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        best = Math.min(best, (before[j - 2] ?? 0) + 1);
      next.push(best);
    }
    before = row;
    row = next;
  }
  return row[b.length] ?? 0;
}

/** The command that is nearest to a name, if one is near. */
export function nearestCommand(name: string): string | undefined {
  const wanted = name.toLowerCase();
  const most = wanted.length < 5 ? 1 : 2;
  const near = COMMANDS.filter((command) => Math.abs(command.length - wanted.length) <= most)
    .map((command) => ({ command, distance: editDistance(wanted, command.toLowerCase()) }))
    .filter(({ distance }) => distance <= most)
    .sort((a, b) => a.distance - b.distance);
  return near[0]?.command;
}

function warningFor(macro: Macro): Warning {
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
    ? `${line} It means nothing for such a job.`
    : `${line} Is it a typo?${hint}`;
  return { message: text, ...(macro.origin === 'file' ? { line: macro.place.line } : {}) };
}

/** What was said and never looked at. Names with a dot and the user's own attributes are not spoken of. */
export function unusedWarnings(macros: MacroTable): Warning[] {
  return macros
    .all()
    .filter(({ name, used, origin }) => {
      return !used && origin !== 'internal' && !name.includes('.') && !NEVER_NAMED.has(name.toLowerCase());
    })
    .map(warningFor)
    .sort((a, b) => (a.line ?? 0) - (b.line ?? 0));
}
