import { FLAG, KIND } from './graph.ts';
import { Complaint } from './problem.ts';
import type { ApplyContext } from './apply.ts';
import type { Command } from './commands.ts';
import type { DagScope } from './scope.ts';

/** Numbers the join nodes across the whole DAG. */
export interface JoinNodes {
  next: number;
  readonly wanted: boolean;
}

const KIND_WORD = ['', 'FINAL', 'PROVISIONER', 'SERVICE'] as const;

/**
 * PARENT … CHILD …. Many parents of many children are connected through an empty join node, which takes p + c edges in
 * place of p × c (DAGMAN_USE_JOIN_NODES).
 */
export function applyDepend(
  command: Extract<Command, { readonly cmd: 'depend' }>,
  context: ApplyContext,
  joins: JoinNodes,
  place: { readonly file: string; readonly line: number },
): void {
  const { table, scope } = context;
  let parents = resolve(command.parents, context, 'terminal', 'Parents');
  const children = resolve(command.children, context, 'initial', 'Children');
  let weak = command.weak;
  if (joins.wanted && parents.length > 1 && children.length > 1) {
    const name = `_condor_join_node${joins.next++}`;
    if (scope.names.has(name)) throw new Complaint(`Join node name ${name} already in use in DAG`);
    const join = table.add(scope.prefix + name, 'JOB', 'noop', '', FLAG.noop | FLAG.join, place);
    scope.names.set(name, join);
    scope.nodes.push(join);
    for (const parent of parents) table.connect(parent, join, weak);
    parents = [join];
    weak = false;
  }
  for (const parent of parents) for (const child of children) table.connect(parent, child, weak);
}

/** The nodes with these names, each once, in the order of definition. */
function resolve(
  names: readonly string[],
  context: ApplyContext,
  end: 'initial' | 'terminal',
  side: string,
): readonly number[] {
  const { scope, table } = context;
  if (names.length === 1) {
    const only = scope.names.get(context.fullName(names[0] ?? ''));
    if (only !== undefined && table.kind[only] === KIND.job) return [only];
  }
  const nodes: number[] = [];
  const missing: string[] = [];
  for (const name of names) {
    const full = context.fullName(name);
    const splice = scope.splices.get(full);
    const node = scope.names.get(full);
    if (splice !== undefined) for (const n of splice[end]) nodes.push(n);
    else if (node !== undefined) nodes.push(node);
    else missing.push(name);
  }
  if (missing.length > 0) throw new Complaint(`References to undefined nodes: ${side} [${missing.join(',')}]`);
  if (nodes.length === 0) throw new Complaint(`${names.join(' ')} has no nodes that could be connected`);
  for (const node of nodes) {
    const kind = table.kind[node] ?? 0;
    if (kind !== KIND.job)
      throw new Complaint(`${KIND_WORD[kind]} node ${table.names[node]} can not have dependencies`);
  }
  if (nodes.length === 1) return nodes;
  return [...new Set(nodes)].sort((a, b) => a - b);
}

/** CONNECT: the nodes at pin n of one splice become parents of the nodes at pin n of the other. */
export function applyConnect(command: Extract<Command, { readonly cmd: 'connect' }>, context: ApplyContext): void {
  const from = spliceNamed(context, command.from, 'parent');
  const to = spliceNamed(context, command.to, 'child');
  const outs = pinCount(from.pinsOut);
  const ins = pinCount(to.pinsIn);
  if (outs === 0) throw new Complaint(`parent splice ${command.from} has 0 pin_outs`);
  if (ins === 0) throw new Complaint(`child splice ${command.to} has 0 pin_ins`);
  if (outs !== ins) {
    throw new Complaint(
      `pin_in/out mismatch: parent splice ${command.from} has ${outs} pin_outs; child splice ${command.to} has ${ins} pin_ins`,
    );
  }
  for (let pin = 1; pin <= outs; pin++) {
    const parents = from.pinsOut.get(pin);
    if (parents === undefined) throw new Complaint(`parent splice ${command.from} has no node for pin_out ${pin}`);
    const children = to.pinsIn.get(pin);
    if (children === undefined) throw new Complaint(`child splice ${command.to} has no node for pin_in ${pin}`);
    for (const parent of parents) for (const child of children) context.table.connect(parent, child, false);
  }
  const orphan = to.nodes.find((node) => (context.table.parents[node] ?? 0) === 0);
  if (orphan !== undefined) {
    throw new Complaint(
      `child splice node ${context.table.names[orphan]} has no parents after making pin connections`,
      'Add a PIN_IN for it, or a parent.',
    );
  }
}

function spliceNamed(context: ApplyContext, name: string, side: string): DagScope {
  const splice = context.scope.splices.get(context.fullName(name));
  if (splice === undefined) throw new Complaint(`Connect ${side} splice ${name} does not exist`);
  return splice;
}

function pinCount(pins: ReadonlyMap<number, unknown>): number {
  let most = 0;
  for (const pin of pins.keys()) most = Math.max(most, pin);
  return most;
}
