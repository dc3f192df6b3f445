/** What other modules may import from this one. */
export { cycleProblems, findCycle, levels } from './cycles.ts';
export { Engine } from './engine/engine.ts';
export type { DagCommand, DagEvent, NodeJobEnd, JobChange, Limits, NodeLogEvent } from './engine/messages.ts';
export { DAG_STATUS, DAG_STATUS_NAMES, STATUS, type Status, STATUS_NAMES } from './engine/status.ts';
export { type DagGraph, descriptionOf, nameOf, placeOf } from './language/graph.ts';
export { type LoadedDag, type LoadOptions, loadDag } from './language/load.ts';
export type { DagSource } from './language/source.ts';
export { type DagEnd, runDag } from './manager/run.ts';
export { type DagRun, logOf } from './manager/prepare.ts';
export type {
  DagFiles,
  DagWorld,
  FoundSubmit,
  Happening,
  JobLogEvent,
  Journal,
  JournalEntry,
  NodeSubmit,
  ScriptRun,
  SubmitOutcome,
} from './manager/world.ts';
export type { Told } from './engine/messages.ts';
export { formatProblem, inOrder, type Problem, refusal } from './language/problem.ts';
export { applyRescue, haltName, lastRescue, rescueName, rescueText } from './rescue.ts';
export { DEFAULT_SETTINGS, readSettings, type DagSettings } from './language/settings.ts';
export { claimSubmission, type SubmissionOptions, submissionFiles } from './submission.ts';
export { dagDescription } from './description.ts';
export { forgetOldRecords, JournalPlace } from './journal-place.ts';
export { diskFiles, readJournal } from './local.ts';
export { sweepDag } from './removal.ts';
export { type ReplayedDag, replayDag } from './replay.ts';
export { managerProgram, withEnvironment } from './subdag.ts';
export { subdagCycles } from './subdag-cycles.ts';
export { type DagOrder, limitsOfDescription, orderArguments, readOrder } from './words.ts';
export { drawMermaid } from './draw/mermaid.ts';
export { type Picture, pictureOf } from './draw/picture.ts';
export { drawSvg } from './draw/svg.ts';
export { type LintFiles, lintDag } from './lint.ts';
export { type DagProgress, progressOf } from './progress.ts';
