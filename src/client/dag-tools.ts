import { diskFiles, type DagOrder, drawMermaid, drawSvg, loadDag, refusal } from '../dag/api.ts';
import { checkDag } from './dag-submit.ts';

export { drawMermaid, drawSvg };
export { readyDag } from './dag-submit.ts';

/** Reads a DAG from its files; throws 'dag-refused' if they have errors. */
export function dagOfFiles(order: DagOrder, cwd: string) {
  const { dag, problems } = loadDag(order.files, diskFiles(cwd), order);
  if (problems.some(({ severity }) => severity === 'error')) throw refusal(problems);
  return dag;
}

/** All errors and warnings of a DAG, and its number of nodes. */
export function lintDagFiles(order: DagOrder, cwd: string) {
  const { loaded, problems } = checkDag(order, diskFiles(cwd), cwd, true);
  return { nodes: loaded.dag.size, problems };
}
