import { GryphusError } from '../errors.ts';
import { type DagRun, primaryOf } from './manager/prepare.ts';
import type { DagFiles } from './manager/world.ts';
import { haltName, lastRescue, renameRescuesAfter, rescueName, savePointPath } from './rescue.ts';
import { DEFAULT_SETTINGS } from './language/settings.ts';

export interface SubmissionOptions {
  /** Start afresh: replace the files of an earlier run and rename its rescue files (`-force`). */
  readonly force?: boolean;
  /** Replace the files of an earlier run and continue (`-update_submit`). */
  readonly updateSubmit?: boolean;
}

/** The files made by submitting a DAG or by its manager's job; another submit would find them. */
export function submissionFiles(primary: string): readonly string[] {
  return ['.condor.sub', '.lib.out', '.lib.err', '.dagman.log'].map((suffix) => primary + suffix);
}

/**
 * Checks whether a DAG may be submitted in its directory: not over the files of an earlier run, unless it continues
 * from a rescue file. With `force`, clears these files away first. Throws a GryphusError where condor_submit_dag would
 * refuse.
 */
export function claimSubmission(
  run: DagRun,
  options: SubmissionOptions,
  files: DagFiles,
  most = DEFAULT_SETTINGS.DAGMAN_MAX_RESCUE_NUM,
): void {
  const primary = primaryOf(run);
  const multi = run.files.length > 1;
  if (run.rescueFrom !== undefined && run.rescueFrom > 0) {
    const name = rescueName(primary, multi, run.rescueFrom);
    if (!files.exists(name)) {
      throw new GryphusError(
        'dag-refused',
        `-dorescuefrom ${run.rescueFrom} specified, but rescue DAG file ${name} does not exist!`,
      );
    }
  }
  if (run.saveFile !== undefined && !files.exists(savePointPath(primary, run.saveFile))) {
    throw new GryphusError(
      'dag-refused',
      `-load_save ${run.saveFile}: there is no file ${savePointPath(primary, run.saveFile)}`,
    );
  }
  if (run.rescueFile !== undefined && !files.exists(run.rescueFile)) {
    throw new GryphusError('dag-refused', `-RescueFile ${run.rescueFile}: no such file`);
  }
  files.remove(haltName(primary));
  if (options.force === true) {
    for (const file of submissionFiles(primary)) files.remove(file);
    renameRescuesAfter(files, primary, multi, 0, most);
  }
  const goesOn =
    (run.rescueFrom ?? 0) > 0 ||
    run.saveFile !== undefined ||
    run.rescueFile !== undefined ||
    options.updateSubmit === true ||
    ((run.autoRescue ?? true) &&
      lastRescue(
        (path) => files.exists(path),
        primary,
        multi,
        most,
        () => {},
      ) > 0);
  if (goesOn) return;
  const there = submissionFiles(primary).filter((file) => files.exists(file));
  if (there.length === 0) return;
  throw new GryphusError('dag-refused', `"${there[0]}" already exists: this DAG was submitted before`, {
    suggestions: [
      'Use -force to replace the files of the earlier run and start over.',
      'Use -update_submit to replace them and continue.',
      ...there.slice(1).map((file) => `"${file}" already exists.`),
    ],
  });
}
