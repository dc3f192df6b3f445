import { Engine } from '../engine/engine.ts';
import { formatProblem, type Problem } from '../language/problem.ts';
import { type DagProgress, progressOf } from '../progress.ts';
import { logTime } from '../times.ts';
import { Manager } from './manager.ts';
import { Outputs } from './outputs.ts';
import { type DagRun, limitsOf, logOf, nodesLogOf, prepare, primaryOf } from './prepare.ts';
import type { DagWorld } from './world.ts';

export type DagEnd =
  | {
      readonly is: 'ended';
      readonly exitCode: number;
      readonly problems: readonly Problem[];
      /** How far the DAG got; absent if it could not start. */
      readonly progress?: DagProgress;
    }
  /** The manager was told to stop; run it again to continue. */
  | { readonly is: 'stopped' };

/** Runs a DAG to its end, or resumes one whose manager died; `journal` tells which. */
export async function runDag(run: DagRun, world: DagWorld): Promise<DagEnd> {
  const entries = world.journal.read();
  const begun = entries[0]?.begin;
  const { loaded, begin, notes } = prepare(run, world.files, begun);
  const errors = loaded.problems.filter((problem) => problem.severity === 'error');
  if (errors.length > 0) {
    const lines = [...errors.map((e) => `ERROR: ${formatProblem(e)}`), `Failed to parse ${primaryOf(run)}`];
    const out = lines.map((line) => `${logTime(world.now())} ${line}\n`).join('');
    world.files.append(logOf(run), out);
    return { is: 'ended', exitCode: 1, problems: loaded.problems };
  }
  const engine = new Engine(loaded.dag, {
    settings: loaded.settings,
    limits: limitsOf(run, loaded.settings),
    dagmanId: run.dagmanId,
    firstSequence: begin.firstSequence,
  });
  const nodesLog = nodesLogOf(run, loaded.settings, world.files);
  const outputs = new Outputs(world.files, engine, {
    dagFiles: run.files,
    primary: primaryOf(run),
    log: logOf(run),
    nodesLog,
    logEvent: (event) => world.logEvent(event),
    nextRescue: Math.min(begin.lastRescue + 1, Math.max(1, loaded.settings.DAGMAN_MAX_RESCUE_NUM)),
  });
  const manager = new Manager(run, world, engine, outputs, nodesLog, begin);
  const opening = [...loaded.problems.map((p) => `Warning: ${p.message}`), ...notes];
  if (begun === undefined) manager.begin(opening);
  else await manager.recover(entries, opening);
  const exitCode = await manager.loop();
  if (exitCode === 'stopped') return { is: 'stopped' };
  return { is: 'ended', exitCode, problems: loaded.problems, progress: progressOf(engine.core) };
}
