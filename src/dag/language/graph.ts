import type { DotSpec, NodeStatusSpec, NodeVar, ScriptSpec, Tolerance } from './commands.ts';
import type { DagPlace } from './problem.ts';

/** The kind of a node. */
export const KIND = { job: 0, final: 1, provisioner: 2, service: 3 } as const;

/**
 * Bits of a node's `flags`. `done`: marked DONE where it is defined; `finished`: by a DONE command, in a rescue file
 * say.
 */
export const FLAG = { noop: 1, done: 2, subdag: 4, join: 8, finished: 16 } as const;

export interface NodeScripts {
  readonly PRE?: ScriptSpec;
  readonly POST?: ScriptSpec;
  readonly HOLD?: ScriptSpec;
}

/** Where the description of a node's jobs comes from. */
export type Description =
  | { readonly is: 'file'; readonly file: string }
  | { readonly is: 'text'; readonly text: string; readonly name: string }
  | { readonly is: 'dag'; readonly file: string };

/**
 * A whole DAG with its splices and includes resolved. Nodes are numbered from 0 in the order of their definition, and
 * every array is indexed by that number. To keep nodes small, properties that most nodes lack are in maps.
 */
export interface DagGraph {
  readonly size: number;
  readonly names: readonly string[];
  readonly byName: ReadonlyMap<string, number>;
  /**
   * Nodes in the order in which files list them: a file's own nodes, then those of its splices, sorted by splice name.
   */
  readonly order: Int32Array;
  readonly kind: Uint8Array;
  readonly flags: Uint8Array;
  /** Index into `texts`: the submit file, description name or DAG file. */
  readonly submit: Int32Array;
  /** Index into `texts`: the node's directory; '' means the DAG manager's own. */
  readonly directory: Int32Array;
  readonly texts: readonly string[];
  readonly descriptions: ReadonlyMap<string, string>;
  readonly priority: Int32Array;
  /** Index into `categories`; -1 for none. */
  readonly category: Int32Array;
  readonly categories: readonly Category[];
  readonly retryMax: Int32Array;
  readonly unlessExit: ReadonlyMap<number, number>;
  readonly abortOn: ReadonlyMap<number, { readonly status: number; readonly code: number | undefined }>;
  readonly preSkip: ReadonlyMap<number, number>;
  readonly tolerance: ReadonlyMap<number, Tolerance>;
  readonly savePoint: ReadonlyMap<number, string>;
  readonly scripts: ReadonlyMap<number, NodeScripts>;
  readonly vars: ReadonlyMap<number, readonly NodeVar[]>;
  readonly edges: Edges;
  readonly final: number | undefined;
  readonly provisioner: number | undefined;
  readonly services: readonly number[];
  readonly dot: DotSpec | undefined;
  readonly nodeStatus: NodeStatusSpec | undefined;
  readonly jobstateLog: string | undefined;
  readonly places: Places;
}

export interface Category {
  readonly name: string;
  /** How many of its nodes may be in the queue at once; -1 for no limit. */
  readonly limit: number;
}

/**
 * Dependencies in both directions, in compressed rows: the children of n are `childList[childStart[n] … childStart[n +
 * 1] - 1]`.
 */
export interface Edges {
  readonly count: number;
  readonly childStart: Int32Array;
  readonly childList: Int32Array;
  /** 1 if the child only needs its parent to have run, not to have succeeded; undefined if no edge is weak. */
  readonly childWeak: Uint8Array | undefined;
  readonly parentStart: Int32Array;
  readonly parentList: Int32Array;
}

/** Where each node was defined. */
export interface Places {
  readonly files: readonly string[];
  /** Index into `files`. */
  readonly file: Int32Array;
  readonly line: Int32Array;
}

export function placeOf(dag: DagGraph, node: number): DagPlace {
  return { file: dag.places.files[dag.places.file[node] ?? 0] ?? '', line: dag.places.line[node] ?? 0 };
}

export function nameOf(dag: DagGraph, node: number): string {
  return dag.names[node] ?? '';
}

export function directoryOf(dag: DagGraph, node: number): string {
  return dag.texts[dag.directory[node] ?? 0] ?? '';
}

export function isSubdag(dag: DagGraph, node: number): boolean {
  return ((dag.flags[node] ?? 0) & FLAG.subdag) !== 0;
}

export function isNoop(dag: DagGraph, node: number): boolean {
  return ((dag.flags[node] ?? 0) & FLAG.noop) !== 0;
}

export function descriptionOf(dag: DagGraph, node: number): Description {
  const name = dag.texts[dag.submit[node] ?? 0] ?? '';
  if (isSubdag(dag, node)) return { is: 'dag', file: name };
  const text = dag.descriptions.get(name);
  return text === undefined ? { is: 'file', file: name } : { is: 'text', text, name };
}

export function childrenOf(dag: DagGraph, node: number): Int32Array {
  return dag.edges.childList.subarray(dag.edges.childStart[node] ?? 0, dag.edges.childStart[node + 1] ?? 0);
}

export function parentsOf(dag: DagGraph, node: number): Int32Array {
  return dag.edges.parentList.subarray(dag.edges.parentStart[node] ?? 0, dag.edges.parentStart[node + 1] ?? 0);
}
