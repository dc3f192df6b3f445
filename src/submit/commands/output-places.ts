import { dirname } from 'node:path/posix';
import { parseRemaps } from '../../job/transfer-lists.ts';
import type { JobMaker, Step } from '../maker.ts';
import { isUrl } from '../maker.ts';
import { noDirectory } from '../missing.ts';
import { fileChecks, NOTHING, runsHere } from './streams.ts';

const FILES: readonly (readonly [attribute: string, command: string, other?: string])[] = [
  ['Out', 'output', 'stdout'],
  ['Err', 'error', 'stderr'],
  ['UserLog', 'log'],
  ['OutputDirectory', 'output_directory'],
];

function check(job: JobMaker, name: string, command: string, other?: string): void {
  if (name === '' || name === NOTHING || isUrl(name) || /\$\$[([]|#pArAlLeLnOdE#/.test(name)) return;
  const path = job.fullPath(name);
  const directory = command === 'output_directory' ? path : dirname(path);
  if (job.scope.missing.isDirectory(directory)) return;
  const text = noDirectory(command, name, directory);
  if (fileChecks(job) === 'warn') job.warn(text, command);
  else if (job.scope.policy.dryRun) job.warn(`${text}: a real submit is refused`, command);
  else job.scope.missing.addDirectory(job.placeOf(command, other), command, name, directory);
}

/** The directories for results and the log must exist, or the problem would only be noticed once the job has ended. */
export const outputPlaces: Step = {
  name: '(output places)',
  run(job) {
    const { draft, scope } = job;
    if (!scope.policy.checkInputs || scope.late || !runsHere(job) || fileChecks(job) === 'none') return;
    for (const [attribute, command, other] of FILES) check(job, draft.string(attribute) ?? '', command, other);
    for (const to of parseRemaps(draft.string('TransferOutputRemaps') ?? '').values()) {
      check(job, to, 'transfer_output_remaps', 'TransferOutputRemaps');
    }
  },
};
