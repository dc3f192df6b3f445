import type { Core } from '../engine/core.ts';
import { STATUS } from '../engine/status.ts';
import { nameOf } from '../language/graph.ts';
import { ctime } from '../times.ts';

/** How a DOT file shows a node in each status: shape, label, and other attributes. */
function look(status: number): readonly [shape: string, state: string, more: string] {
  switch (status) {
    case STATUS.preRun:
      return ['ellipse', 'Pre', ' style=dotted'];
    case STATUS.submitted:
      return ['ellipse', 'R', ' peripheries=2'];
    case STATUS.postRun:
      return ['ellipse', 'Post', ' style=dotted'];
    case STATUS.done:
      return ['ellipse', 'Done', ' style=bold'];
    case STATUS.error:
      return ['box', 'E', ''];
    default:
      return ['ellipse', 'I', ''];
  }
}

/** The text of a DOT file as DAGMan writes it. `include`: the header file's name and its contents. */
export function dotText(
  core: Core,
  now: number,
  include: { readonly file: string; readonly text: string } | undefined,
): string {
  const { dag } = core;
  const parts = [`digraph DAG {\n    label="DAGMan Job status at ${ctime(now)}";\n\n`];
  if (include !== undefined) {
    parts.push(
      `// Beginning of commands included from ${include.file}.\n${include.text}`,
      `${include.text.endsWith('\n') || include.text === '' ? '' : '\n'}// End of commands included from ${include.file}.\n\n`,
    );
  }
  for (const node of dag.order) {
    const name = quoted(nameOf(dag, node));
    const [shape, state, more] = look(core.status[node] ?? STATUS.ready);
    parts.push(`    "${name}" [shape=${shape} label="${name} (${state})"${more}];\n`);
  }
  parts.push('\n');
  for (const node of dag.order) {
    for (let i = dag.edges.childStart[node] ?? 0; i < (dag.edges.childStart[node + 1] ?? 0); i++) {
      parts.push(`    "${quoted(nameOf(dag, node))}" -> "${quoted(nameOf(dag, dag.edges.childList[i] ?? 0))}";\n`);
    }
  }
  parts.push('}\n');
  return parts.join('');
}

function quoted(name: string): string {
  return name.replaceAll('"', '\\"');
}
