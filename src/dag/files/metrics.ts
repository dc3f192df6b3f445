import type { Core } from '../engine/core.ts';
import { FLAG } from '../language/graph.ts';

export interface MetricsFacts {
  /** Unix milliseconds. */
  readonly start: number;
  readonly end: number;
  readonly exitCode: number;
  readonly rescueNumber: number;
  /** For a sub-DAG, the cluster of the DAG manager above it. */
  readonly parentDagmanId: string;
  readonly version: string;
}

/**
 * The text of a `.metrics` file: JSON with DAGMan's order and spacing, version 2 or 1 (DAGMAN_METRICS_FILE_VERSION).
 */
export function metricsText(core: Core, facts: MetricsFacts): string {
  const { dag, counts } = core;
  let subdags = 0;
  for (const node of dag.order) if (((dag.flags[node] ?? 0) & FLAG.subdag) !== 0) subdags++;
  const { failed, succeeded } = counts.ended;
  const v1 = core.settings.DAGMAN_METRICS_FILE_VERSION === 1;
  const ofNodes = v1 ? 'jobs' : 'nodes';
  // Version 2 counts the service nodes in its totals, version 1 does not (DagmanMetrics::GetSums).
  const total = dag.order.length + (v1 ? 0 : dag.services.length);
  const run = failed[0] + failed[1] + succeeded[0] + succeeded[1] + (v1 ? 0 : failed[2] + succeeded[2]);
  const lines: (readonly [string, string])[] = [
    ['client', '"condor_dagman"'],
    ['version', JSON.stringify(facts.version)],
    ['type', '"metrics"'],
    ...(v1 ? [] : [['metrics_version', '2'] as const]),
    ['start_time', (facts.start / 1000).toFixed(3)],
    ['end_time', (facts.end / 1000).toFixed(3)],
    ['duration', ((facts.end - facts.start) / 1000).toFixed(3)],
    ['exitcode', String(facts.exitCode)],
    ['dagman_id', `"${core.dagmanId}"`],
    ['parent_dagman_id', `"${facts.parentDagmanId}"`],
    ['rescue_dag_number', String(facts.rescueNumber)],
    ...(v1 ? [] : [['has_final_node', String(dag.final !== undefined)] as const]),
    [ofNodes, String(dag.order.length - subdags)],
    [`${ofNodes}_failed`, String(failed[0])],
    [`${ofNodes}_succeeded`, String(succeeded[0])],
    [`dag_${ofNodes}`, String(subdags)],
    [`dag_${ofNodes}_failed`, String(failed[1])],
    [`dag_${ofNodes}_succeeded`, String(succeeded[1])],
  ];
  if (!v1) {
    lines.push(
      ['provisioner_nodes', dag.provisioner === undefined ? '0' : '1'],
      ['service_nodes', String(dag.services.length)],
      ['service_nodes_failed', String(failed[2])],
      ['service_nodes_succeeded', String(succeeded[2])],
    );
  }
  lines.push([`total_${ofNodes}`, String(total)], [`total_${ofNodes}_run`, String(run)]);
  if (!v1) {
    lines.push(
      ['jobs_submitted', String(counts.jobsSubmitted)],
      ['jobs_succeeded', String(counts.jobsCompleted)],
      ['jobs_failed', String(counts.jobsSubmitted - counts.jobsCompleted)],
    );
  }
  lines.push(['DagStatus', String(core.dagStatus)]);
  return `{\n${lines.map(([name, value]) => `    "${name}":${value}`).join(',\n')}\n}\n`;
}
