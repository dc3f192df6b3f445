import { CATALOGUE, spellings, type SubmitCommand } from '../catalogue.ts';
import type { MacroTable } from '../macros.ts';
import type { JobMaker, Step } from '../maker.ts';

function run(job: JobMaker, command: SubmitCommand, written: string): void {
  const { name, attribute, fate, says = '', idle } = command;
  const value = attribute === undefined ? job.param(written) : job.draft.get(attribute)?.text;
  if (value === undefined || idle.test(value) || job.scope.late) return;
  const text = `${name} ${fate === 'refused' ? 'is not supported' : 'has no effect'}. ${says}`;
  if (fate === 'warned') job.warn(text, written);
  else if (job.scope.policy.dryRun) job.warn(`${text} A real submit is refused.`, written);
  else throw job.fault(written, `${name} is not supported.`, [says]);
}

/** Warns about or refuses commands without effect here, once each, written as a command or as `+Attribute`. */
export function fates(macros: MacroTable): Step[] {
  return CATALOGUE.flatMap((command): Step[] => {
    if (command.fate !== 'warned' && command.fate !== 'refused') return [];
    const written = spellings(command).find((name) => macros.find(name) !== undefined);
    return written === undefined ? [] : [{ name: `(fate) ${command.name}`, run: (job) => run(job, command, written) }];
  });
}
