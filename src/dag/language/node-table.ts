import { type DagGraph, FLAG, KIND, type NodeScripts } from './graph.ts';
import type { DagPlace } from './problem.ts';
import type { NodeType, NodeVar, ScriptSpec, ScriptType, Tolerance } from './commands.ts';
import { EdgeList } from './edges.ts';

/** A throttle while files are read. When a splice is lifted, its throttle may become an alias of its parent's. */
export interface Throttle {
  name: string;
  limit: number;
  nodes: number;
  liftedTo: Throttle | undefined;
  /** The place of the MAXJOBS command that set the limit. */
  place?: DagPlace;
}

/** Stores texts that many nodes share only once. */
class TextPool {
  readonly texts: string[] = [''];
  private readonly index = new Map<string, number>([['', 0]]);

  add(text: string): number {
    let at = this.index.get(text);
    if (at === undefined) {
      at = this.texts.length;
      this.texts.push(text);
      this.index.set(text, at);
    }
    return at;
  }
}

/** The nodes of all files in the order of definition, numbered from 0. */
export class NodeTable {
  readonly names: string[] = [];
  readonly kind: number[] = [];
  readonly flags: number[] = [];
  readonly submit: number[] = [];
  readonly directory: number[] = [];
  readonly priority: number[] = [];
  readonly throttle: (Throttle | undefined)[] = [];
  readonly retryMax: number[] = [];
  /** How often each node was named as a child, and as a parent. */
  readonly parents: number[] = [];
  readonly children: number[] = [];
  readonly unlessExit = new Map<number, number>();
  readonly abortOn = new Map<number, { readonly status: number; readonly code: number | undefined }>();
  readonly preSkip = new Map<number, number>();
  readonly tolerance = new Map<number, Tolerance>();
  readonly savePoint = new Map<number, string>();
  readonly scripts = new Map<number, NodeScripts>();
  readonly vars = new Map<number, readonly NodeVar[]>();
  readonly edges = new EdgeList();
  readonly texts = new TextPool();
  private readonly files = new TextPool();
  private readonly placeFile: number[] = [];
  private readonly placeLine: number[] = [];

  /** Returns the new node's number. */
  add(name: string, type: NodeType, submit: string, directory: string, flags: number, place: DagPlace): number {
    const node = this.names.length;
    this.names.push(name);
    this.kind.push(kindOf(type));
    this.flags.push(flags | (type === 'SUBDAG' ? FLAG.subdag : 0));
    this.submit.push(this.texts.add(submit));
    this.directory.push(this.texts.add(directory));
    this.priority.push(0);
    this.throttle.push(undefined);
    this.retryMax.push(0);
    this.parents.push(0);
    this.children.push(0);
    this.placeFile.push(this.files.add(place.file));
    this.placeLine.push(place.line);
    return node;
  }

  connect(parent: number, child: number, weak: boolean): void {
    this.edges.add(parent, child, weak);
    this.children[parent] = (this.children[parent] ?? 0) + 1;
    this.parents[child] = (this.parents[child] ?? 0) + 1;
  }

  /** Returns the script that it replaces. */
  setScript(node: number, type: ScriptType, script: ScriptSpec): ScriptSpec | undefined {
    const old = this.scripts.get(node);
    this.scripts.set(node, { ...old, [type]: script });
    return old?.[type];
  }

  isPlainJob(node: number): boolean {
    return this.kind[node] === KIND.job;
  }

  setFlag(node: number, flag: number): void {
    this.flags[node] = (this.flags[node] ?? 0) | flag;
  }

  /** The arrays of the finished graph. */
  finish(): Omit<
    DagGraph,
    'byName' | 'order' | 'descriptions' | 'final' | 'provisioner' | 'services' | 'dot' | 'nodeStatus' | 'jobstateLog'
  > {
    const categories: { readonly name: string; readonly limit: number }[] = [];
    const seen = new Map<Throttle, number>();
    const category = Int32Array.from(this.throttle, (throttle) => {
      let top = throttle;
      while (top?.liftedTo !== undefined) top = top.liftedTo;
      if (top === undefined) return -1;
      let at = seen.get(top);
      if (at === undefined) {
        at = categories.length;
        categories.push({ name: top.name, limit: top.limit });
        seen.set(top, at);
      }
      return at;
    });
    return {
      size: this.names.length,
      names: this.names,
      kind: Uint8Array.from(this.kind),
      flags: Uint8Array.from(this.flags),
      submit: Int32Array.from(this.submit),
      directory: Int32Array.from(this.directory),
      texts: this.texts.texts,
      priority: Int32Array.from(this.priority),
      category,
      categories,
      retryMax: Int32Array.from(this.retryMax),
      unlessExit: this.unlessExit,
      abortOn: this.abortOn,
      preSkip: this.preSkip,
      tolerance: this.tolerance,
      savePoint: this.savePoint,
      scripts: this.scripts,
      vars: this.vars,
      edges: this.edges.rows(this.names.length),
      places: {
        files: this.files.texts,
        file: Int32Array.from(this.placeFile),
        line: Int32Array.from(this.placeLine),
      },
    };
  }
}

function kindOf(type: NodeType): number {
  switch (type) {
    case 'FINAL':
      return KIND.final;
    case 'PROVISIONER':
      return KIND.provisioner;
    case 'SERVICE':
      return KIND.service;
    case 'JOB':
    case 'SUBDAG':
      return KIND.job;
  }
}
