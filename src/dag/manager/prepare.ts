import { readString } from '../../job/values.ts';
import type { Limits } from '../engine/messages.ts';
import { cycleProblems } from '../cycles.ts';
import { lastSequence } from '../files/jobstate.ts';
import { type DagGraph, nameOf } from '../language/graph.ts';
import { type LoadedDag, type LoadOptions, loadDag } from '../language/load.ts';
import { directoryOf, fileNameOf, inDirectory } from '../language/names.ts';
import type { Problem } from '../language/problem.ts';
import { applyRescue, lastRescue, numberOfRescue, renameRescuesAfter, rescueName, savePointPath } from '../rescue.ts';
import type { DagSettings } from '../language/settings.ts';
import type { DagFiles, JournalBegin } from './world.ts';

/** How to run a DAG: what the user asked of `dag submit`. */
export interface DagRun extends LoadOptions {
  /** DAG files, the primary one first; the others are added to it. */
  readonly files: readonly string[];
  /** The cluster of the DAG manager's own job. */
  readonly dagmanId: number;
  /** For a sub-DAG, the cluster of the manager above it. */
  readonly parentDagmanId?: number;
  readonly limits?: Partial<Limits>;
  readonly batchName?: string;
  /** `JobBatchId` of the manager's job, which is the outermost DAG's. */
  readonly batchId?: string;
  /** Continue from the last rescue file, if there is one; DAGMAN_AUTO_RESCUE by default. */
  readonly autoRescue?: boolean;
  /** Continue from the rescue file of this number (`-DoRescueFrom`). */
  readonly rescueFrom?: number;
  /** Continue from a save file (`-load_save`). */
  readonly saveFile?: string;
  /** Continue from this rescue file (`-RescueFile`). */
  readonly rescueFile?: string;
  /** The DAG starts afresh, and so do its sub-DAGs (`-force`). */
  readonly force?: boolean;
  /** The directory for `.dagman.out` if it is not next to the DAG (`-outfile_dir`). */
  readonly outfileDir?: string;
  /** Names of variables that the managers of sub-DAGs get too; with `importEnv`, all. */
  readonly includeEnv?: readonly string[];
  readonly importEnv?: boolean;
  /** When to send mail about the manager's job. */
  readonly notification?: string;
  /** Reads the text of an attribute of the manager's own job. */
  readonly ownAttribute?: (name: string) => string | undefined;
  /** The version that metrics report. */
  readonly version: string;
}

export interface PreparedDag {
  readonly loaded: LoadedDag;
  readonly begin: JournalBegin;
  /** Lines for the log about what the run continues from. */
  readonly notes: readonly string[];
}

/** Loads the DAG and decides where to continue from; `begun` is what a run that crashed had decided. */
export function prepare(run: DagRun, files: DagFiles, begun: JournalBegin | undefined): PreparedDag {
  const notes: string[] = [];
  const loaded = loadDag(run.files, files, run);
  const { dag } = loaded;
  const begin = begun ?? decide(run, loaded, files, (note) => notes.push(note));
  const problems: Problem[] = [...loaded.problems];
  const from = run.saveFile === undefined ? begin.rescueFile : savePointPath(primaryOf(run), run.saveFile);
  if (from !== undefined) {
    const text = files.read(from);
    if (text === undefined)
      problems.push({ file: from, line: 0, severity: 'error', message: `${from} does not exist` });
    else problems.push(...applyRescue(dag, text, from));
    notes.push(
      ...(run.saveFile === undefined
        ? [
            `${whichRescue(run, begin.rescueNumber)}; running ${from} in combination with normal DAG file${run.files.length > 1 ? 's' : ''}`,
            '~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~',
            `USING RESCUE DAG ${from}`,
          ]
        : [`Loading saved progress from ${run.saveFile} for DAG.`]),
    );
  }
  if (loaded.settings.DAGMAN_STARTUP_CYCLE_DETECT) problems.push(...cycleProblems(dag));
  if (begun !== undefined && begun.fingerprint !== fingerprint(dag)) {
    problems.push({
      file: primaryOf(run),
      line: 0,
      severity: 'error',
      message: 'The DAG has been changed since it was started',
      remedy:
        'Undo the change, or remove the DAG and submit it again: its rescue file records the nodes that are done.',
    });
  }
  return { loaded: { ...loaded, problems }, begin, notes };
}

function whichRescue(run: DagRun, number: number): string {
  if (run.rescueFile !== undefined) return 'Rescue DAG file specified';
  return (run.rescueFrom ?? 0) > 0 ? `Rescue DAG number ${number} specified` : `Found rescue DAG number ${number}`;
}

function decide(run: DagRun, loaded: LoadedDag, files: DagFiles, note: (text: string) => void): JournalBegin {
  const primary = primaryOf(run);
  const multi = run.files.length > 1;
  const most = loaded.settings.DAGMAN_MAX_RESCUE_NUM;
  let rescueNumber = 0;
  const asked = run.rescueFile === undefined ? run.rescueFrom : numberOfRescue(run.rescueFile, primary, multi);
  const named = run.rescueFile !== undefined || (asked ?? 0) > 0;
  if (named) {
    rescueNumber = asked ?? 0;
    renameRescuesAfter(files, primary, multi, rescueNumber, most);
  }
  const last = lastRescue((path) => files.exists(path), primary, multi, most, note);
  if (!named && (run.autoRescue ?? loaded.settings.DAGMAN_AUTO_RESCUE)) rescueNumber = last;
  const rescueFile = run.rescueFile ?? (rescueNumber > 0 ? rescueName(primary, multi, rescueNumber) : undefined);
  const { jobstateLog } = loaded.dag;
  const old = rescueFile !== undefined && jobstateLog !== undefined ? files.read(jobstateLog) : undefined;
  return {
    rescueFile,
    rescueNumber: run.saveFile === undefined ? rescueNumber : 0,
    lastRescue: last,
    firstSequence: old === undefined ? 1 : lastSequence(old) + 1,
    fingerprint: fingerprint(loaded.dag),
  };
}

export function primaryOf(run: DagRun): string {
  return run.files[0] ?? '';
}

/** The manager's log, `NAME.dag.dagman.out`. */
export function logOf(run: Pick<DagRun, 'files' | 'outfileDir'>): string {
  const primary = run.files[0] ?? '';
  const log = run.outfileDir === undefined ? primary : inDirectory(run.outfileDir, fileNameOf(primary));
  return `${log}.dagman.out`;
}

/** The node jobs' log, absolute (DAGMAN_DEFAULT_NODE_LOG). */
export function nodesLogOf(run: DagRun, settings: DagSettings, files: DagFiles): string {
  const primary = primaryOf(run);
  const own = (name: string): string => readString({ get: (n) => run.ownAttribute?.(n) }, name) ?? 'undef';
  const path = settings.DAGMAN_DEFAULT_NODE_LOG.replaceAll('@(DAG_DIR)', directoryOf(primary))
    .replaceAll('@(DAG_FILE)', fileNameOf(primary))
    .replaceAll('@(CLUSTER)', String(run.dagmanId))
    .replaceAll('@(OWNER)', own('Owner'))
    .replaceAll('@(NODE_NAME)', own('DAGNodeName'));
  return files.absolute(path);
}

export function limitsOf(run: DagRun, settings: DagSettings): Limits {
  return {
    maxJobs: settings.DAGMAN_MAX_JOBS_SUBMITTED,
    maxIdle: settings.DAGMAN_MAX_JOBS_IDLE,
    maxPre: settings.DAGMAN_MAX_PRE_SCRIPTS,
    maxPost: settings.DAGMAN_MAX_POST_SCRIPTS,
    maxHold: settings.DAGMAN_MAX_HOLD_SCRIPTS,
    ...run.limits,
  };
}

/** FNV-1a over the names and edges: the journal's node numbers stay valid as long as it does not change. */
function fingerprint(dag: DagGraph): string {
  let hash = 0x811c9dc5;
  const mix = (n: number): void => {
    hash = Math.imul(hash ^ n, 0x01000193);
  };
  for (let node = 0; node < dag.size; node++) {
    const name = nameOf(dag, node);
    for (let i = 0; i < name.length; i++) mix(name.charCodeAt(i));
    mix(10);
  }
  for (const child of dag.edges.childList) mix(child);
  for (const start of dag.edges.childStart) mix(start);
  return (hash >>> 0).toString(16);
}
