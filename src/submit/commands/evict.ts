import { parseAttr } from '../attr.ts';
import { sizeOf } from '../calculate.ts';
import { referencesOf } from '../expressions.ts';
import type { JobMaker, Step } from '../maker.ts';
import { tokens } from '../text.ts';

/** How a request grows after the job was evicted for exceeding it. */
export interface RetryPlan {
  readonly command: string;
  readonly attribute: string;
  /** The attribute's unit, in bytes. */
  readonly base: number;
  /** Sizes, the last of which may be an expression. */
  readonly values: string | undefined;
  readonly increase?: string | undefined;
}

/**
 * Separates the lines of a transform within one attribute, because HTCondor's queue log allows no newline in a value.
 */
const LINE = '\x1e';

/** The subcode of an eviction for using too much memory or disk. */
const TOO_MUCH: Readonly<Record<string, number>> = { RequestMemory: 102, RequestDisk: 104 };

interface Sequence {
  readonly sizes: readonly number[];
  readonly last: string | undefined;
}

function sequence(job: JobMaker, plan: RetryPlan): Sequence {
  const sizes: number[] = [];
  let rest = plan.values ?? '';
  for (let size = sizeOf(rest, plan.base, ','); size; size = sizeOf(rest, plan.base, ',')) {
    sizes.push(size.value);
    rest = size.rest;
    if (!rest.startsWith(',')) break;
    rest = rest.slice(1);
  }
  const last = rest.trim();
  if (last !== '' && !parseAttr(last)) {
    throw job.fault(plan.command, `${plan.command}=${last} is invalid. must be an expression or number`);
  }
  sizes.reduce((before, size) => {
    if (sizes.length > 1 && size <= before) {
      throw job.fault(
        plan.command,
        `${plan.command} must have an increasing sequence of values, but ${size} is not greater than ${before}`,
      );
    }
    return size;
  }, 0);
  return { sizes, last: last === '' ? undefined : (parseAttr(last)?.text ?? last) };
}

function sequenceBody(job: JobMaker, attribute: string, values: readonly (number | string)[]): string {
  const list = `Retry${attribute}`;
  const index = `${list}Index`;
  job.setExpr(list, `{${values.join(',')}}`);
  const next = `EVALSET ${index} MIN({size(${list})-1, (${index}?:0)+1})`;
  return `EVALSET ${attribute} ${list}[${index}?:0]${LINE}${next}`;
}

function increaseBody(job: JobMaker, plan: RetryPlan, most: string | undefined): string {
  const { attribute, increase = '' } = plan;
  const step = sizeOf(increase, plan.base);
  const refers = step === undefined && referencesOf(increase, [attribute])?.own.has(attribute.toLowerCase());
  if (step === undefined ? !refers : step.value <= 0) {
    throw job.fault(
      'retry_request_memory_increase',
      `${attribute} retry increment must be a positive number or an expression that references ${attribute}`,
    );
  }
  const next = step === undefined ? increase : `${attribute} + ${step.value}`;
  if (most !== undefined) {
    job.setExpr(`Max${attribute}`, most);
    job.setExpr(`Next${attribute}`, next);
    return `EVALSET ${attribute} MIN({Next${attribute}, Max${attribute}})`;
  }
  const value = nextValue(job, attribute, next);
  if (value === undefined) {
    throw job.fault(
      'retry_request_memory_increase',
      `${attribute} retry increment (${increase}) must evaluate to an integer at submit time`,
    );
  }
  return `SET ${attribute} ${value}`;
}

function nextValue(job: JobMaker, attribute: string, next: string): number | undefined {
  job.setExpr('#Next', next);
  return job.draft.has(attribute) ? integer(job.draft.number('#Next')) : undefined;
}

function integer(value: number | undefined): number | undefined {
  return value === undefined || !Number.isFinite(value) ? undefined : Math.trunc(value);
}

function bodyOf(job: JobMaker, plan: RetryPlan): string | undefined {
  const { sizes, last } = sequence(job, plan);
  const values: (number | string)[] = last === undefined ? [...sizes] : [...sizes, last];
  const final = values.at(-1);
  if (values.length > 1) return sequenceBody(job, plan.attribute, values);
  if (plan.increase !== undefined) {
    return increaseBody(job, plan, final === undefined ? undefined : String(final));
  }
  if (final === undefined) return undefined;
  return `${last === undefined ? 'SET' : 'EVALSET'} ${plan.attribute} ${final}`;
}

/** Writes the transform that HTCondor applies on eviction, and names it in TransformOnEvict. */
export function retryPlan(job: JobMaker, plan: RetryPlan): void {
  const body = bodyOf(job, plan);
  if (body === undefined) return;
  const subCode = TOO_MUCH[plan.attribute];
  const when = `REQUIREMENTS (VacateReasonCode==21 || VacateReasonCode == 34) && VacateReasonSubCode == ${subCode}${LINE}`;
  job.setString(`TransformBody_${plan.attribute}`, (subCode === undefined ? '' : when) + body);
  const named = tokens(job.draft.string('TransformOnEvict') ?? '');
  if (!named.some((name) => name.toLowerCase() === plan.attribute.toLowerCase())) {
    job.setString('TransformOnEvict', [...named, plan.attribute].join(' '));
  }
}

/** Stores the user's own transforms and lists their names. */
export const evictChecks: Step = {
  name: 'on_evict_checks',
  run(job) {
    const list = job.param('on_evict_checks', 'TransformOnEvict');
    if (list === undefined) return;
    const { macros, expander } = job.scope;
    const names: string[] = [];
    for (const name of tokens(list)) {
      const body = macros.lookup(`transform_body_${name}`) ?? macros.lookup(`TransformBody_${name}`);
      if (body === undefined) continue;
      names.push(name);
      const lines = tokens(body, '\n').map((line) => expander.expand(line));
      job.setString(`TransformBody_${name}`, lines.filter((line) => line !== '' && !line.startsWith('#')).join(LINE));
    }
    job.setString('TransformOnEvict', names.join(' '));
  },
};
