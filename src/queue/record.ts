import { Attrs, type AttrTexts, isAttrTexts } from '../job/attrs.ts';
import type { JobId } from '../job/ids.ts';
import { JOB_STATUS, LIFE, STATES, type State } from '../job/life.ts';
import { checkStored } from '../util/stored-json.ts';
import type { JobRecord } from './types.ts';

/**
 * The stored form of a job: `state|manager|site|priority|attempt|since`, LF, JSON of its own attributes; manager and
 * site by number.
 */
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

/** Attributes derived from the job's fields, never stored. In lower case. */
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

const BY_NAME = new Map<string | undefined, State>(STATES.map((state) => [state, state]));

const STATUS = Object.fromEntries(STATES.map((state) => [state, String(JOB_STATUS[LIFE[state].shows])])) as Readonly<
  Record<State, string>
>;

/** The state of that name; `undefined` if this program does not know it. */
export function stateNamed(name: string | undefined): State | undefined {
  return BY_NAME.get(name);
}

/** Names of managers and sites by their numbers. */
export type NamesByNumber = ReadonlyMap<string, string>;

export function parseJob(id: JobId, value: string): StoredJob {
  const cut = value.indexOf('\n');
  const [name, manager = '0', site = '0', priority, attempt, since] = value.slice(0, cut).split('|');
  const state = BY_NAME.get(name);
  if (state === undefined || since === undefined) {
    throw new Error(`The queue's record of job ${id.cluster}.${id.proc} is not readable.`);
  }
  return {
    state,
    manager,
    site,
    priority: Number(priority),
    attempt: Number(attempt),
    since: Number(since),
    own: value.slice(cut + 1),
  };
}

export function decodeJob(id: JobId, stored: StoredJob, cluster: Attrs, names: NamesByNumber): JobRecord {
  const { state, priority, attempt, since } = stored;
  const manager = names.get(stored.manager) ?? '';
  const site = names.get(stored.site) ?? '';
  let low: string | undefined;
  // Most of what is asked of a job is its cluster's: to look for a name in the text costs less than to parse it.
  const lacks = (name: string): boolean => {
    low ??= stored.own.toLowerCase();
    return /^\w+$/.test(name) && !MADE.has(name) && !low.includes(`"${name}":`);
  };
  const attrs = new Attrs(() => ownOf(id, stored, site), cluster, lacks);
  return { id, state, manager, site, attempt, priority, since, attrs };
}

/** The job's own attributes, with those that are derived from its fields. */
export function ownOf(id: JobId, stored: StoredJob, site: string): AttrTexts {
  const { state, attempt, since, own } = stored;
  const attrs = own === NO_ATTRS ? {} : readAttrTexts(own, `The queue's record of job ${id.cluster}.${id.proc}`);
  attrs['ClusterId'] = `${id.cluster}`;
  attrs['ProcId'] = `${id.proc}`;
  attrs['JobStatus'] = STATUS[state];
  attrs['EnteredCurrentStatus'] = `${since}`;
  attrs['GryphusState'] = `"${state}"`;
  attrs['GryphusSite'] = siteText(site);
  attrs['GryphusAttempt'] = `${attempt}`;
  return attrs;
}

/** JSON of the same. */
export function ownText({ cluster, proc }: JobId, stored: StoredJob, site: string): string {
  const { state, attempt, since, own } = stored;
  const made = `"ClusterId":"${cluster}","ProcId":"${proc}","JobStatus":"${STATUS[state]}","EnteredCurrentStatus":"${since}","GryphusState":"\\"${state}\\"","GryphusSite":${JSON.stringify(siteText(site))},"GryphusAttempt":"${attempt}"`;
  return own === NO_ATTRS ? `{${made}}` : `${own.slice(0, -1)},${made}}`;
}

const NO_ATTRS = '{}';

const siteTexts = new Map<string, string>();

/** The string literal of a site's name. */
function siteText(site: string): string {
  let text = siteTexts.get(site);
  if (text === undefined) {
    text = `"${site.replaceAll(/["\\]/g, '\\$&')}"`;
    siteTexts.set(site, text);
  }
  return text;
}

/**
 * The attributes of a proc that must be stored: not those equal to the cluster's, nor those derived from the job's
 * fields.
 */
export function ownAttrs(attrs: AttrTexts, cluster: Attrs): AttrTexts {
  const own: [string, string | null][] = [];
  for (const name in attrs) {
    const text = attrs[name];
    if (text === undefined || isMade(name)) continue;
    const shared = cluster.get(name);
    if (text === null ? shared !== undefined : text !== shared) own.push([name, text]);
  }
  return Object.fromEntries(own);
}

/** A stored ad; `what` names it for the error. */
export function readAttrTexts(json: string, what: string): Record<string, string | null> {
  return checkStored(isAttrTexts, json, { what, remedy: QUEUE_REMEDY });
}

/** For what is damaged in Redis. */
export const QUEUE_REMEDY = 'Restore the state directory from a backup, or remove these jobs with gryphus rm --forcex.';

/** The shared ad of a cluster. */
export function readClusterAd(json: string, cluster: number): Record<string, string | null> {
  return readAttrTexts(json, `The queue's ad of cluster ${cluster}`);
}

/** JSON that Redis's Lua can read: a lone surrogate, which UTF-8 cannot represent, becomes U+FFFD. */
export function encodeJson(value: unknown): string {
  const json = JSON.stringify(value);
  // JSON.stringify writes lone surrogates, and only them, as \ud800 to \udfff.
  return json.includes('\\ud') ? json.replaceAll(/(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g, '$1\uFFFD') : json;
}

/** The value of a string attribute; '' if it is not a plain string literal. */
export function plainString(text: string | null | undefined): string {
  const inner = /^"((?:[^"\\]|\\.)*)"$/s.exec(text ?? '')?.[1];
  return inner?.replaceAll(/\\(["\\])/g, '$1') ?? '';
}

/** JobPrio as a 32-bit integer; 0 if it is not a literal. */
export function priorityOf(text: string | undefined): number {
  const value = /^[+-]?\d{1,10}$/.test(text ?? '0') ? Number(text ?? 0) : 0;
  return Math.max(-(2 ** 31), Math.min(2 ** 31 - 1, value)) || 0;
}

/** A non-negative integer as written; '' for anything else. */
export function literal(text: string | undefined): string {
  return /^\d{1,15}$/.test(text ?? '') ? (text ?? '') : '';
}
