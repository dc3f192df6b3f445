import { type DagGraph, descriptionOf, directoryOf, isNoop, isSubdag, nameOf, placeOf } from './language/graph.ts';
import { loadDag } from './language/load.ts';
import type { DagSource } from './language/source.ts';
import { inDirectory } from './language/names.ts';
import type { Problem } from './language/problem.ts';

/** A file without these words has no sub-DAG. Most have none, so this saves parsing them as DAGs. */
const MAY_HAVE_SUBDAGS = /^[ \t]*(SUBDAG|SPLICE|INCLUDE|FINAL)\b/im;

/**
 * Finds sub-DAGs that are, or contain, a DAG running above them: they would be submitted forever. `files`: the DAG's
 * own. Each file is read once, however many nodes name it; a file that does not exist yet is skipped.
 */
export function subdagCycles(dag: DagGraph, files: readonly string[], source: DagSource): readonly Problem[] {
  const problems: Problem[] = [];
  const clear = new Set<string>();
  for (let node = 0; node < dag.size; node++) {
    const first = subdagOf(dag, node, source);
    if (first === undefined) continue;
    const chain = loopOf(
      first,
      source,
      files.map((file) => source.absolute(file)),
      clear,
    );
    if (chain === undefined) continue;
    const message =
      chain.length === 1
        ? `The sub-DAG of node ${nameOf(dag, node)} is this DAG itself: ${first.path}`
        : `The sub-DAG of node ${nameOf(dag, node)} contains itself: ${chain.join(' -> ')}`;
    const remedy = 'To run a DAG again, retry it (RETRY), or submit it from its last node.';
    problems.push({ ...placeOf(dag, node), severity: 'error', command: 'SUBDAG', message, remedy });
  }
  return problems;
}

interface Subdag {
  /** The name that its node gives it. */
  readonly name: string;
  readonly path: string;
  /** The directory in which its manager runs. */
  readonly dir: string;
  readonly file: string;
}

function subdagOf(dag: DagGraph, node: number, source: DagSource, within = ''): Subdag | undefined {
  if (!isSubdag(dag, node) || isNoop(dag, node)) return undefined;
  const description = descriptionOf(dag, node);
  if (description.is !== 'dag') return undefined;
  const dir = inDirectory(within, directoryOf(dag, node));
  const path = inDirectory(dir, description.file);
  return { name: description.file, path, dir, file: source.absolute(path) };
}

/** The files on the path from `from` down to one of `above`; `undefined` if there is no such path. */
function loopOf(
  from: Subdag,
  source: DagSource,
  above: readonly string[],
  clear: Set<string>,
): readonly string[] | undefined {
  if (above.includes(from.file)) return [from.path];
  if (clear.has(from.file)) return undefined;
  const text = source.read(from.path);
  if (text !== undefined && MAY_HAVE_SUBDAGS.test(text)) {
    const inner: DagSource = {
      read: (path) => source.read(inDirectory(from.dir, path)),
      absolute: (path) => source.absolute(inDirectory(from.dir, path)),
    };
    const { dag } = loadDag([from.name], inner);
    for (let node = 0; node < dag.size; node++) {
      const next = subdagOf(dag, node, source, from.dir);
      const rest = next === undefined ? undefined : loopOf(next, source, [...above, from.file], clear);
      if (rest !== undefined) return [from.path, ...rest];
    }
  }
  clear.add(from.file);
  return undefined;
}
