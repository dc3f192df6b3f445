import { statusOf } from './engine/core.ts';
import { Engine } from './engine/engine.ts';
import type { DagGraph } from './language/graph.ts';
import { diskFiles } from './local.ts';
import { type DagRun, limitsOf, prepare } from './manager/prepare.ts';
import type { JournalEntry } from './manager/world.ts';
import { type DagProgress, progressOf } from './progress.ts';

/** A DAG as its manager sees it, reconstructed from the journal by another process. */
export interface ReplayedDag {
  readonly dag: DagGraph;
  /** The rescue file from which it continues. */
  readonly rescueFile?: string;
  progress(): DagProgress;
  /** STATUS numbers by node. */
  status(): Uint8Array;
}

/** Replays a journal without acting or writing. `undefined` if the DAG has not started or has changed since. */
export function replayDag(run: DagRun, root: string, entries: readonly JournalEntry[]): ReplayedDag | undefined {
  const [first, ...rest] = entries;
  if (first?.begin === undefined) return undefined;
  const { loaded, begin } = prepare(run, diskFiles(root), first.begin);
  if (loaded.problems.some((problem) => problem.severity === 'error')) return undefined;
  const engine = new Engine(loaded.dag, {
    settings: loaded.settings,
    limits: limitsOf(run, loaded.settings),
    dagmanId: run.dagmanId,
    firstSequence: begin.firstSequence,
  });
  engine.start(first.at);
  for (const entry of rest) engine.step(entry.events, entry.at);
  return {
    dag: loaded.dag,
    ...(begin.rescueFile === undefined ? {} : { rescueFile: begin.rescueFile }),
    progress: () => progressOf(engine.core),
    status: () => Uint8Array.from({ length: loaded.dag.size }, (_, node) => statusOf(engine.core, node)),
  };
}
