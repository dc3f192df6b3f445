import type { Throttle } from './node-table.ts';

/** One name space: the DAG's files together, or one splice. */
export interface DagScope {
  /** The prefix of all its nodes' names, such as `OUT+IN+`; empty for the DAG itself. */
  readonly prefix: string;
  /** Its name in warnings. */
  readonly label: string;
  /** Its nodes except service nodes: its own, then those of its splices once they are lifted. */
  readonly nodes: number[];
  readonly names: Map<string, number>;
  readonly splices: Map<string, DagScope>;
  readonly throttles: Map<string, Throttle>;
  readonly descriptions: Map<string, string>;
  readonly pinsIn: Map<number, number[]>;
  readonly pinsOut: Map<number, number[]>;
  readonly services: number[];
  /** Nodes without parents, and without children, at the end of its file: its name stands for these in PARENT. */
  initial: readonly number[];
  terminal: readonly number[];
  final: number | undefined;
  provisioner: number | undefined;
  /** Its contents have been moved into the scope of which it is a splice. */
  lifted: boolean;
}

export function newScope(prefix: string, label: string): DagScope {
  return {
    prefix,
    label,
    nodes: [],
    names: new Map(),
    splices: new Map(),
    throttles: new Map(),
    descriptions: new Map(),
    pinsIn: new Map(),
    pinsOut: new Map(),
    services: [],
    initial: [],
    terminal: [],
    final: undefined,
    provisioner: undefined,
    lifted: false,
  };
}

export function throttleOf(scope: DagScope, name: string): Throttle {
  let throttle = scope.throttles.get(name);
  if (throttle === undefined) {
    throttle = { name, limit: -1, nodes: 0, liftedTo: undefined };
    scope.throttles.set(name, throttle);
  }
  return throttle;
}

/**
 * Moves the contents of the splices of `scope` into it, in the order of their names; a splice can still be named
 * afterwards. `warn` is told which settings the scope overrides.
 */
export function liftSplices(scope: DagScope, warn: (strictness: number, message: string) => void): void {
  const fresh = [...scope.splices].filter(([, splice]) => !splice.lifted);
  for (const [name, splice] of fresh.sort(([a], [b]) => (a < b ? -1 : 1))) {
    splice.lifted = true;
    for (const throttle of splice.throttles.values()) liftThrottle(scope, name, throttle, warn);
    for (const node of splice.nodes) scope.nodes.push(node);
    for (const service of splice.services) scope.services.push(service);
    for (const [local, node] of splice.names) scope.names.set(`${name}+${local}`, node);
    for (const [key, text] of splice.descriptions) {
      const own = scope.descriptions.get(key);
      if (own === undefined) scope.descriptions.set(key, text);
      else if (own !== text) {
        warn(
          4,
          `Conflicting inline descriptions using the same name '${key}' between ${scope.label} and splice ${name}`,
        );
      }
    }
  }
}

/** A category whose name begins with `+` is shared by all splices; any other belongs to its splice. */
function liftThrottle(
  scope: DagScope,
  splice: string,
  throttle: Throttle,
  warn: (strictness: number, message: string) => void,
): void {
  if (!throttle.name.startsWith('+')) throttle.name = `${splice}+${throttle.name}`;
  const mine = throttleOf(scope, throttle.name);
  throttle.liftedTo = mine;
  mine.nodes += throttle.nodes;
  if (mine.limit >= 0 && mine.limit !== throttle.limit) {
    warn(
      2,
      `higher-level (${scope.label}) maxjobs value of ${mine.limit} for category ${mine.name} overrides splice ${splice} value of ${throttle.limit}`,
    );
  } else {
    mine.limit = throttle.limit;
    if (throttle.place !== undefined) mine.place = throttle.place;
  }
}
