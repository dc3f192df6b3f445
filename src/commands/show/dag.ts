import type { DagStatus, DagSubmitted } from '../../index.ts';
import { counted, printable } from '../../util/plain-text.ts';
import { longDate, shortDate } from './dates.ts';
import { submittedText } from './submit.ts';
import { tableLines } from './table.ts';
import type { Width } from './width.ts';

/** `x.dag:3 warning: … → remedy`. */
export function problemLine(problem: {
  readonly file: string;
  readonly line: number;
  readonly severity: string;
  readonly command?: string;
  readonly message: string;
  readonly remedy?: string;
}): string {
  const { file, line, severity, command, message, remedy } = problem;
  const about = command === undefined ? '' : `${command}: `;
  const place = line === 0 ? printable(file) : `${printable(file)}:${line}`;
  return `${place}: ${severity}: ${about}${printable(message)}${remedy === undefined ? '' : `\n  → ${remedy}`}`;
}

/** All DAGs in the queue, a line each. */
export function dagTable(dags: readonly DagStatus[], width: Width): string[] {
  if (dags.length === 0) return ['No DAGs are in the queue.'];
  const heads = [
    'ID',
    'BATCH_NAME',
    'SUBMITTED',
    ' DONE',
    ' PRE',
    ' RUN',
    ' POST',
    ' READY',
    ' WAIT',
    ' FAIL',
    ' TOTAL',
    'STATE',
  ];
  const rows = dags.map((dag) => [
    String(dag.cluster),
    dag.batchName,
    shortDate(dag.submitted),
    ...countsOf(dag),
    stateOf(dag),
  ]);
  return tableLines(heads, rows, width, { gives: ['BATCH_NAME'], drops: ['SUBMITTED', 'PRE', 'POST', 'READY'] });
}

function countsOf({ progress: p }: DagStatus): string[] {
  if (p === undefined) return ['-', '-', '-', '-', '-', '-', '-', '-'];
  return [p.done, p.pre, p.queued, p.post, p.ready, p.unready, p.failed, p.total].map(String);
}

function stateOf({ manager, exitCode, progress }: DagStatus): string {
  if (exitCode !== undefined) return exitCode === 0 ? 'done' : `ended with ${exitCode}`;
  if (manager === 'gone') return 'removed';
  return progress?.status === 'DAG_STATUS_HALTED' ? 'halted' : manager;
}

/** One DAG: its progress, what it waits for, what failed. */
export function dagLines(dag: DagStatus, bar: (fraction: number) => string, width: Width): string[] {
  const { progress: p } = dag;
  const lines = [
    `DAG ${dag.cluster} (${dag.files.join(' ')}) in ${dag.directory}: ${stateOf(dag)}`,
    `Batch name: ${dag.batchName}; submitted ${longDate(dag.submitted * 1000)}`,
  ];
  if (dag.continuesFrom !== undefined) lines.push(`Continues from ${dag.continuesFrom}.`);
  if (dag.rescue !== undefined) lines.push(`Submitted again, it continues from ${dag.rescue}.`);
  if (p === undefined)
    return [...lines, dag.manager === 'gone' ? '' : 'Its manager has not started yet.'].filter(Boolean);
  const heads = [' DONE', ' PRE', ' RUN', ' POST', ' READY', ' WAIT', ' FAILED', ' FUTILE', ' HELD', ' TOTAL'];
  const counts = [p.done, p.pre, p.queued, p.post, p.ready, p.unready, p.failed, p.futile, p.held, p.total].map(String);
  lines.push('', bar(p.fraction), '', ...tableLines(heads, [counts], width));
  if (p.criticalPath.length > 0) {
    const shown = p.criticalPath.nodes.slice(0, 8).map(({ node }) => node);
    const more = p.criticalPath.length - shown.length;
    lines.push(
      '',
      `Critical path (${counted(p.criticalPath.length, 'node')}): ${shown.join(' → ')}${more > 0 ? ` → ${more} more` : ''}`,
    );
    if (dag.exitCode === undefined) lines.push(p.criticalPath.waitsFor);
  }
  if (p.retries !== undefined && p.retries.made > 0) {
    const nodes = p.retries.nodes.map(({ node, made, most }) => `${node} ${made} of ${most}`);
    const more = p.retries.nodes.reduce((sum, { made }) => sum + made, 0) < p.retries.made ? ', …' : '';
    lines.push('', `Retries (${p.retries.made}): ${nodes.join(', ')}${more}`);
  }
  if (p.failures.length > 0) lines.push('', 'Failed:', ...p.failures.map(({ node, error }) => `  ${node}: ${error}`));
  return lines;
}

/** `[████████░░░░] 66 %`: `width` characters between the brackets. */
export function progressBar(fraction: number, width: number): string {
  const full = Math.round(Math.min(1, Math.max(0, fraction)) * width);
  return `[${'█'.repeat(full)}${'░'.repeat(width - full)}] ${Math.floor(fraction * 100)} %`;
}

/** What `condor_submit_dag` prints: tools read the cluster from it. */
export function condorSubmitted({ cluster, file, log }: DagSubmitted): string {
  return `${submittedText({ cluster, total: 1 })}\n${filesOf(file, log)}\n${RULE}`;
}

/** The same with `-no_submit`. */
export function condorFiles(file: string): string {
  const how = '-no_submit given, not submitting DAG to HTCondor. You can do this with:';
  return `\n${filesOf(file)}\n${how}\n"condor_submit ${file}"\n${RULE}`;
}

const RULE = `${'-'.repeat(71)}\n`;

function filesOf(file: string, log?: string): string {
  const primary = file.slice(0, -'.condor.sub'.length);
  return `${RULE}File for submitting this DAG to HTCondor           : ${file}
Log of DAGMan debugging messages                   : ${log ?? `${primary}.dagman.out`}
Log of HTCondor library output                     : ${primary}.lib.out
Log of HTCondor library error messages             : ${primary}.lib.err
Log of the life of condor_dagman itself            : ${primary}.dagman.log
`;
}
