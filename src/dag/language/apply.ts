import { FLAG, KIND } from './graph.ts';
import { Complaint } from './problem.ts';
import type { Command, NodeVar } from './commands.ts';
import type { NodeTable } from './node-table.ts';
import { type DagScope, throttleOf } from './scope.ts';
import { isAllNodes } from './syntax.ts';

/**
 * What the commands about nodes work on. `warn` takes the strictness from which the warning becomes an error, and its
 * text.
 */
export interface ApplyContext {
  readonly table: NodeTable;
  readonly scope: DagScope;
  readonly appendVars: boolean;
  readonly fullName: (name: string) => string;
  readonly warn: (strictness: number, message: string) => void;
}

type NodeModifier = Extract<Command, { readonly node: string }>;

const KIND_WORD = ['JOB', 'FINAL', 'PROVISIONER', 'SERVICE'] as const;

function kindName(table: NodeTable, node: number): string {
  return KIND_WORD[table.kind[node] ?? 0] ?? 'JOB';
}

/** Finds the node of that name in this scope. Throws a Complaint if there is none. */
export function findNode(context: ApplyContext, name: string): number {
  const node = context.scope.names.get(context.fullName(name));
  if (node !== undefined) return node;
  if (context.scope.splices.has(context.fullName(name))) throw new Complaint(`Cannot be applied to splice ${name}`);
  const outside = name.includes('+') ? "Commands about a splice's nodes belong in the splice's file." : undefined;
  throw new Complaint(`References undefined node ${name}`, outside);
}

/**
 * ALL_NODES means the jobs of this file, without FINAL, PROVISIONER or SERVICE nodes and those that the parser adds.
 */
function nodesNamed(context: ApplyContext, name: string): readonly number[] {
  if (!isAllNodes(name)) return [findNode(context, name)];
  const { table, scope } = context;
  const nodes = scope.nodes.filter((n) => table.isPlainJob(n) && ((table.flags[n] ?? 0) & FLAG.join) === 0);
  if (nodes.length === 0) throw new Complaint('ALL_NODES: the DAG has no nodes that it could apply to');
  return nodes;
}

function onlyJobs(context: ApplyContext, node: number, whatNot: string): void {
  if (context.table.isPlainJob(node)) return;
  throw new Complaint(`${kindName(context.table, node)} node ${context.table.names[node]} ${whatNot}`);
}

/** Carries out one command about nodes. Throws a Complaint if it cannot. */
export function applyModifier(command: NodeModifier, context: ApplyContext): void {
  const { table, warn } = context;
  switch (command.cmd) {
    case 'vars':
      applyVars(command, context);
      return;
    case 'script':
      for (const node of nodesNamed(context, command.node)) {
        const old = table.setScript(node, command.type, command.script);
        if (old === undefined) continue;
        const name = table.names[node];
        warn(
          4,
          `node ${name} already has ${command.type} script <${old.command}> assigned; changing to <${command.script.command}>`,
        );
      }
      return;
    case 'retry':
      for (const node of nodesNamed(context, command.node)) {
        onlyJobs(context, node, 'can not have a retry specification');
        table.retryMax[node] = command.max;
        if (command.unlessExit !== undefined && command.unlessExit !== 0)
          table.unlessExit.set(node, command.unlessExit);
      }
      return;
    case 'abort':
      for (const node of nodesNamed(context, command.node)) {
        if (table.kind[node] === KIND.final) {
          throw new Complaint(`FINAL node ${table.names[node]} cannot have an ABORT-DAG-ON specification`);
        }
        table.abortOn.set(node, { status: command.status, code: command.code });
      }
      return;
    case 'priority':
      for (const node of nodesNamed(context, command.node)) {
        onlyJobs(context, node, 'can not have a priority');
        const old = table.priority[node] ?? 0;
        if (old !== 0 && old !== command.value) {
          warn(2, `New priority ${command.value} for node ${table.names[node]} overrides old value ${old}`);
        }
        table.priority[node] = command.value;
      }
      return;
    case 'pre-skip':
      for (const node of nodesNamed(context, command.node)) {
        if (command.status === 0) warn(4, 'exit code 0 for a PRE_SKIP value is weird.');
        const old = table.preSkip.get(node);
        if (old !== undefined) {
          warn(3, `new PRE_SKIP value  ${command.status} for node ${table.names[node]} overrides old value ${old}`);
        }
        table.preSkip.set(node, command.status);
      }
      return;
    case 'tolerance':
      for (const node of nodesNamed(context, command.node)) table.tolerance.set(node, command.tolerance);
      return;
    case 'category':
      for (const node of nodesNamed(context, command.node)) setCategory(context, node, command.category);
      return;
    case 'done': {
      const node = findNode(context, command.node);
      if (table.isPlainJob(node)) table.setFlag(node, FLAG.finished);
      else warn(1, `${kindName(table, node)} node ${table.names[node]} can not be referenced by the DONE command`);
      return;
    }
    case 'save-point': {
      const node = findNode(context, command.node);
      onlyJobs(context, node, 'can not have a save point');
      table.savePoint.set(node, command.file);
      return;
    }
    case 'pin': {
      const node = findNode(context, command.node);
      const pins = command.side === 'in' ? context.scope.pinsIn : context.scope.pinsOut;
      const list = pins.get(command.pin);
      if (list === undefined) pins.set(command.pin, [node]);
      else list.push(node);
    }
  }
}

function setCategory(context: ApplyContext, node: number, name: string): void {
  const { table, scope, warn } = context;
  onlyJobs(context, node, 'can not be added to a category');
  const old = table.throttle[node];
  if (old !== undefined) {
    old.nodes--;
    if (old.name !== name) {
      warn(3, `new category ${name} for node ${table.names[node]} overrides old value ${old.name}`);
    }
  }
  const throttle = throttleOf(scope, name);
  throttle.nodes++;
  table.throttle[node] = throttle;
}

/** Nodes that shared a list before an ALL_NODES command share the changed list after it. */
function applyVars(command: Extract<Command, { readonly cmd: 'vars' }>, context: ApplyContext): void {
  const { table, warn } = context;
  const prepend = command.place === undefined ? !context.appendVars : command.place === 'prepend';
  const nodes = nodesNamed(context, command.node);
  const changed = nodes.length > 1 ? new Map<readonly NodeVar[] | undefined, readonly NodeVar[]>() : undefined;
  for (const node of nodes) {
    const old = table.vars.get(node);
    const known = new Set(old?.map((v) => v.name));
    for (const { key } of old === undefined ? [] : command.pairs) {
      if (known.has(key)) {
        warn(3, `VAR "${key}" is already defined in node "${table.names[node]}"`);
      }
    }
    const list = changed?.get(old) ?? withPairs(old ?? [], command.pairs, prepend);
    changed?.set(old, list);
    table.vars.set(node, list);
  }
}

/** A name that is set again keeps its original position and its original PREPEND or APPEND. */
function withPairs(
  old: readonly NodeVar[],
  pairs: readonly { readonly key: string; readonly value: string }[],
  prepend: boolean,
): readonly NodeVar[] {
  const list = [...old];
  const places = new Map(list.map((v, i) => [v.name, i]));
  for (const { key, value } of pairs) {
    const at = places.get(key) ?? list.length;
    list[at] = { ...(list[at] ?? { name: key, prepend }), value };
    places.set(key, at);
  }
  return list;
}
