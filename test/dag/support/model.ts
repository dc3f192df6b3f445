/** A node of a random DAG; in attempt n it does entry n of its lists, and from then on the last one. */
export interface ModelNode {
  readonly parents: readonly number[];
  readonly job: readonly number[];
  readonly pre: readonly number[] | undefined;
  readonly post: readonly number[] | undefined;
  readonly retries: number;
  readonly unlessExit: number | undefined;
  readonly preSkip: number | undefined;
  readonly done: boolean;
  readonly noop: boolean;
  readonly priority: number;
}

export interface ModelDag {
  readonly nodes: readonly ModelNode[];
  /** Exit code of the final node's job, if there is one. */
  readonly final: number | undefined;
}

export function codeOf(list: readonly number[], attempt: number): number {
  return list[Math.min(attempt, list.length - 1)] ?? 0;
}

export function nodeName(node: number): string {
  return `N${node}`;
}

/** The DAG file of a model. */
export function dagText(dag: ModelDag): string {
  const lines: string[] = ['NODE_STATUS_FILE status 0 ALWAYS-UPDATE', 'JOBSTATE_LOG jobstate'];
  dag.nodes.forEach((node, i) => {
    const name = nodeName(i);
    lines.push(`JOB ${name} job.sub${node.noop ? ' NOOP' : ''}${node.done ? ' DONE' : ''}`);
    if (node.parents.length > 0) lines.push(`PARENT ${node.parents.map(nodeName).join(' ')} CHILD ${name}`);
    if (node.pre !== undefined) lines.push(`SCRIPT PRE ${name} pre $RETRY`);
    if (node.post !== undefined) lines.push(`SCRIPT POST ${name} post $RETRY $RETURN`);
    if (node.retries > 0) {
      lines.push(
        `RETRY ${name} ${node.retries}${node.unlessExit === undefined ? '' : ` UNLESS-EXIT ${node.unlessExit}`}`,
      );
    }
    if (node.preSkip !== undefined) lines.push(`PRE_SKIP ${name} ${node.preSkip}`);
    if (node.priority !== 0) lines.push(`PRIORITY ${name} ${node.priority}`);
  });
  if (dag.final !== undefined) lines.push('FINAL F job.sub');
  return `${lines.join('\n')}\n`;
}

export interface Expected {
  readonly status: Readonly<Record<string, string>>;
  /** How often each node's jobs are submitted; nodes with no submits are left out. */
  readonly submits: Readonly<Record<string, number>>;
  readonly exitCode: number;
}

type End = 'done' | 'error' | 'stopped' | 'futile' | 'unready';

/** The expected outcome of a DAG, derived node by node: no events, no time, no order. */
export function expected(dag: ModelDag): Expected {
  const ends: End[] = [];
  const submits: Record<string, number> = {};
  dag.nodes.forEach((node, i) => {
    const above = node.parents.map((p) => ends[p] ?? 'done');
    if (node.done) ends.push('done');
    else if (above.every((end) => end === 'done')) {
      const { end, jobs } = runNode(node);
      ends.push(end);
      if (jobs > 0) submits[nodeName(i)] = jobs;
    } else ends.push(above.some((end) => end === 'error' || end === 'futile') ? 'futile' : 'unready');
  });
  const status: Record<string, string> = {};
  ends.forEach((end, i) => {
    status[nodeName(i)] = STATUS_OF[end];
  });
  const failed = ends.some((end) => end === 'error' || end === 'stopped');
  if (dag.final === undefined) return { status, submits, exitCode: failed ? 1 : 0 };
  submits['F'] = 1;
  status['F'] = dag.final === 0 ? 'STATUS_DONE' : 'STATUS_ERROR';
  return { status, submits, exitCode: dag.final === 0 ? 0 : 1 };
}

const STATUS_OF: Readonly<Record<End, string>> = {
  done: 'STATUS_DONE',
  error: 'STATUS_ERROR',
  stopped: 'STATUS_ERROR',
  futile: 'STATUS_FUTILE',
  unready: 'STATUS_NOT_READY',
};

function runNode(node: ModelNode): { readonly end: End; readonly jobs: number } {
  let jobs = 0;
  for (let attempt = 0; ; attempt++) {
    let code = node.pre === undefined ? 0 : codeOf(node.pre, attempt);
    if (code !== 0 && code === node.preSkip) return { end: 'done', jobs };
    if (code === 0) {
      if (!node.noop) {
        jobs++;
        code = codeOf(node.job, attempt);
      }
      if (node.post !== undefined) code = codeOf(node.post, attempt);
    }
    if (code === 0) return { end: 'done', jobs };
    if (attempt >= node.retries) return { end: 'error', jobs };
    if (code === node.unlessExit) return { end: 'stopped', jobs };
  }
}
