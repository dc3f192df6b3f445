import { Attrs, type AttrTexts } from '../job/attrs.ts';
import type { JobId } from '../job/ids.ts';
import { JOB_STATUS, LIFE, STATES, type State } from '../job/life.ts';
import type { JobRecord } from './api.ts';

/** How a job is kept: `state|manager|site|priority|attempt|since` LF JSON of its own attributes; manager and site by number. */
export interface StoredJob {
  readonly state: State;
  readonly manager: string;
  readonly site: string;
  readonly priority: number;
  readonly attempt: number;
  readonly since: number;
  /** JSON object. */
  readonly own: string;
}

const HEAD = /^([^|]*)\|(\d+)\|(\d+)\|(-?\d+)\|(\d+)\|(-?\d+)\n/;

/** Made from the job's fields: never stored. Lower case. */
const MADE = new Set([
  'clusterid',
  'procid',
  'jobstatus',
  'enteredcurrentstatus',
  'gryphusstate',
  'gryphussite',
  'gryphusattempt',
]);

export function isMade(attribute: string): boolean {
  return MADE.has(attribute.toLowerCase());
}

export function encodeJob(job: StoredJob): string {
  return `${job.state}|${job.manager}|${job.site}|${job.priority}|${job.attempt}|${job.since}\n${job.own}`;
}

/** Names of managers and sites by their numbers. */
export type Names = ReadonlyMap<string, string>;

export function decodeJob(id: JobId, value: string, cluster: Attrs, names: Names): JobRecord {
  const head = HEAD.exec(value);
  const state = STATES.find((known) => known === head?.[1]);
  if (!head || state === undefined)
    throw new Error(`The queue's record of job ${id.cluster}.${id.proc} is not readable.`);
  const own = JSON.parse(value.slice(head[0].length)) as Record<string, string | null>;
  const site = names.get(head[3] ?? '') ?? '';
  const attempt = Number(head[5]);
  const since = Number(head[6]);
  own['ClusterId'] = String(id.cluster);
  own['ProcId'] = String(id.proc);
  own['JobStatus'] = String(JOB_STATUS[LIFE[state].shows]);
  own['EnteredCurrentStatus'] = String(since);
  own['GryphusState'] = `"${state}"`;
  own['GryphusSite'] = quoted(site);
  own['GryphusAttempt'] = String(attempt);
  return {
    id,
    state,
    manager: names.get(head[2] ?? '') ?? '',
    site,
    attempt,
    priority: Number(head[4]),
    since,
    attrs: new Attrs(own, cluster),
  };
}

function quoted(text: string): string {
  return `"${text.replaceAll(/["\\]/g, '\\$&')}"`;
}

/** What of a proc's attributes must be kept: not what the cluster says too, not what is made from the job's fields. */
export function ownAttrs(attrs: AttrTexts, cluster: Attrs): AttrTexts {
  const own: Record<string, string | null> = {};
  for (const name in attrs) {
    const text = attrs[name];
    if (text === undefined || isMade(name)) continue;
    const shared = cluster.own[name] ?? cluster.get(name);
    if (text === null ? shared !== undefined : text !== shared) own[name] = text;
  }
  return own;
}

/** JSON that Redis' Lua reads too: a lone surrogate, which UTF-8 does not have, becomes U+FFFD. */
export function encodeJson(value: unknown): string {
  const json = JSON.stringify(value);
  // JSON.stringify writes lone surrogates, and only them, as \ud800 to \udfff.
  return json.includes('\\ud') ? json.replaceAll(/(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g, '$1\uFFFD') : json;
}

/** A text attribute's value; '' where it is not a plain string literal. */
export function plainString(text: string | null | undefined): string {
  const inner = /^"((?:[^"\\]|\\.)*)"$/s.exec(text ?? '')?.[1];
  return inner?.replaceAll(/\\(["\\])/g, '$1') ?? '';
}

/** JobPrio as a whole number of 32 bits; 0 where it is not a literal. */
export function priorityOf(text: string | undefined): number {
  const value = /^[+-]?\d{1,10}$/.test(text ?? '0') ? Number(text ?? 0) : 0;
  return Math.max(-(2 ** 31), Math.min(2 ** 31 - 1, value)) || 0;
}
