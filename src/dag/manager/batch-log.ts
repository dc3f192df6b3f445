import type { Core } from '../engine/core.ts';
import { nameOf } from '../language/graph.ts';
import type { Outputs } from './outputs.ts';
import type { DagRun } from './prepare.ts';
import type { JournalEntry } from './world.ts';

/** The first lines of a run's log. */
export function headerLines(
  run: DagRun,
  batchName: string,
  nodesLog: string,
  opening: readonly string[],
): readonly string[] {
  const stars = '******************************************************';
  return [
    stars,
    '** condor_dagman (CONDOR_DAGMAN) STARTING UP',
    `** Gryphus ${run.version}`,
    stars,
    `Workflow batch-id: <${run.dagmanId}.0>`,
    `Workflow batch-name: <${batchName}>`,
    `Default node log file is: <${nodesLog}>`,
    `Parsing ${run.files.length} dagfiles`,
    ...run.files.map((file) => `Parsing ${file} ...`),
    ...opening,
  ];
}

/** The node jobs' log records what the jobs did before the engine draws its conclusions. */
export function logJobs(entry: JournalEntry, core: Core, outputs: Outputs): void {
  const { at } = entry;
  for (const event of entry.events) {
    if (event.is === 'submitted') {
      const node = nameOf(core.dag, event.node);
      for (let proc = 0; proc < event.procs; proc++) {
        outputs.logJob({ about: 'job', at, node, cluster: event.cluster, proc, change: { what: 'submit' } });
      }
    } else if (event.is === 'job') {
      const node = core.byCluster.get(event.cluster) ?? submittedIn(entry, event.cluster);
      if (node === undefined) continue;
      const { cluster, proc, change } = event;
      outputs.logJob({ about: 'job', at, node: nameOf(core.dag, node), cluster, proc, change });
    }
  }
}

function submittedIn(entry: JournalEntry, cluster: number): number | undefined {
  for (const event of entry.events) if (event.is === 'submitted' && event.cluster === cluster) return event.node;
  return undefined;
}
