import {
  asCondition,
  attributesOf,
  binary,
  type ClassAd,
  type Expr,
  isInt,
  literal,
  parseExpr,
  printExpr,
  Real,
  ternary,
  toDouble,
  tryEvaluate,
  EvalFailed,
  unary,
  type Value,
} from '../../classad/api.ts';
import { POLICY_EXPRESSIONS, type PolicyExpression, type PolicyTexts } from '../../config/owner-policies.ts';
import type { Truths } from './machine-life.ts';

/** References and list items that one expression may look at: a policy is evaluated every few seconds. */
const MOST_STEPS = 10_000;
/** CONTINUE that is undefined counts as true after this time, in seconds. */
const MAX_SUSPEND = 600;
/** Resources of which an offer has only what is free: what they are is not known here. */
const FREE: ReadonlySet<string> = new Set(['cpus', 'memory', 'disk', 'gpus']);

export interface PolicyScope {
  readonly my: ClassAd;
  readonly target?: ClassAd | undefined;
  /** Unix seconds. */
  readonly now: number;
}

/** A machine's policy: its expressions, and what their values mean. */
export class Policy {
  readonly texts: PolicyTexts;
  readonly #exprs: ReadonlyMap<PolicyExpression, Expr>;
  readonly #said = new Set<string>();
  readonly #complain: (message: string) => void;
  /** What was found wrong with its expressions so far, once each. */
  readonly complaints: string[] = [];

  constructor(texts: PolicyTexts, complain: (message: string) => void = () => undefined) {
    this.texts = texts;
    this.#complain = complain;
    this.#exprs = new Map(POLICY_EXPRESSIONS.map((name) => [name, parseExpr(texts[name], 'old')]));
  }

  /** The attributes that its expressions name, directly or through those of `ad`; in lower case. */
  names(ad: ClassAd): ReadonlySet<string> {
    const all = new Set<string>();
    for (const expr of this.#exprs.values()) for (const name of attributesOf(expr, ad).my) all.add(name);
    return all;
  }

  /** Whether the machine is its owner's, whatever a job may be like. */
  isOwner(scope: Omit<PolicyScope, 'target'>): boolean {
    return this.#truth('IS_OWNER', scope, false);
  }

  /** What it says of a running job. `suspendedFor`: seconds. */
  truths(scope: PolicyScope, isOwner: boolean, suspendedFor: number): Truths {
    return {
      isOwner,
      wantSuspend: this.#truth('WANT_SUSPEND', scope, false),
      suspend: this.#truth('SUSPEND', scope, false),
      continue: this.#truth('CONTINUE', scope, suspendedFor > MAX_SUSPEND),
      preempt: this.#truth('PREEMPT', scope, false),
      wantVacate: this.#truth('WANT_VACATE', scope, true),
      kill: this.#truth('KILL', scope, false),
    };
  }

  /** An attribute of `my` as a condition; false if it is none. */
  isTrue(name: string, { my, target, now }: PolicyScope): boolean {
    const expr = my.get(name);
    const value = expr && tryEvaluate(expr, { my, target, now, steps: MOST_STEPS });
    return value !== undefined && !(value instanceof EvalFailed) && asCondition(value) === true;
  }

  /** An attribute of `my` as a number, if it is one. */
  number(name: string, { my, target, now }: PolicyScope): number | undefined {
    const expr = my.get(name);
    const value = expr && tryEvaluate(expr, { my, target, now, steps: MOST_STEPS });
    return !(value instanceof EvalFailed) && (isInt(value) || value instanceof Real) ? toDouble(value) : undefined;
  }

  /** Whether a running job is to be checkpointed now: by the machine's policy, or the job's own PeriodicCheckpoint. */
  wantsCheckpoint(scope: PolicyScope): boolean {
    if (this.#truth('PERIODIC_CHECKPOINT', scope, false)) return true;
    const { my, target, now } = scope;
    return target !== undefined && this.isTrue('PeriodicCheckpoint', { my: target, target: my, now });
  }

  /** Seconds that a job may run on before it is preempted. */
  retirement(scope: PolicyScope): number {
    return this.#seconds('MaxJobRetirementTime', scope, 0);
  }

  /** Seconds that a job may take to end when it is asked to. */
  vacateTime(scope: PolicyScope): number {
    return this.#seconds('MachineMaxVacateTime', scope, MAX_SUSPEND);
  }

  /**
   * START as the machine advertises it: what depends on attributes that always change is replaced by its present value,
   * so that machines alike are alike to the negotiator.
   */
  startText(my: ClassAd, changing: ReadonlySet<string>, now: number): string {
    const expr = this.#exprs.get('START');
    const resolved = expr && resolve(expr, my, changing, now);
    return resolved === undefined || resolved === expr ? this.texts.START : printExpr(resolved, 'old');
  }

  #truth(name: PolicyExpression, scope: PolicyScope, otherwise: boolean): boolean {
    const value = this.#value(name, scope);
    const truth = value instanceof EvalFailed ? undefined : asCondition(value);
    if (truth === undefined) this.#say(name, value, String(otherwise));
    return truth ?? otherwise;
  }

  #seconds(name: PolicyExpression, scope: PolicyScope, otherwise: number): number {
    const value = this.#value(name, scope);
    if (!(value instanceof EvalFailed) && (isInt(value) || value instanceof Real)) return Math.max(0, toDouble(value));
    this.#say(name, value, String(otherwise));
    return otherwise;
  }

  #value(name: PolicyExpression, { my, target, now }: PolicyScope): Value | EvalFailed {
    const expr = this.#exprs.get(name);
    return expr === undefined ? undefined : tryEvaluate(expr, { my, target, now, steps: MOST_STEPS });
  }

  #say(name: PolicyExpression, value: Value | EvalFailed, otherwise: string): void {
    const what =
      value instanceof EvalFailed
        ? 'cannot be evaluated in time'
        : value === undefined
          ? 'is undefined'
          : 'is an error';
    const message = `${name} ${what} here and counts as ${otherwise}`;
    if (this.#said.has(message)) return;
    this.#said.add(message);
    this.complaints.push(message);
    this.#complain(message);
  }
}

/** Replaces the parts of a condition that depend on changing attributes of `my`, and on no job, by their values. */
function resolve(expr: Expr, my: ClassAd, changing: ReadonlySet<string>, now: number): Expr {
  const names = attributesOf(expr, my);
  if (![...names.my].some((name) => changing.has(name))) return expr;
  if (names.target.size === 0 && !names.dynamic && ![...names.my].some((name) => FREE.has(name))) {
    const value = tryEvaluate(expr, { my, now, steps: MOST_STEPS });
    return literal(value instanceof EvalFailed ? undefined : value);
  }
  const inner = (part: Expr): Expr => resolve(part, my, changing, now);
  if (expr.kind === 'unary') return unary(expr.op, inner(expr.operand));
  if (expr.kind === 'binary') return binary(expr.op, inner(expr.left), inner(expr.right));
  if (expr.kind === 'ternary') return ternary(inner(expr.test), inner(expr.yes), inner(expr.no));
  return expr;
}
