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

/** A job's record and the name of its site. */
interface Placed {
  readonly id: JobId;
  readonly stored: StoredJob;
  readonly site: string;
}

/** Attributes that follow from the record's fields, never stored. */
const MADE: readonly (readonly [name: string, text: (job: Placed) => string])[] = [
  ['ClusterId', ({ id }) => `${id.cluster}`],
  ['ProcId', ({ id }) => `${id.proc}`],
  ['JobStatus', ({ stored }) => STATUS[stored.state]],
  ['EnteredCurrentStatus', ({ stored }) => `${stored.since}`],
  ['GryphusState', ({ stored }) => `"${stored.state}"`],
  ['GryphusSite', ({ site }) => siteText(site)],
  ['GryphusAttempt', ({ stored }) => `${stored.attempt}`],
];

const MADE_BY_LOW = new Map(MADE.map(([name, text]) => [name.toLowerCase(), text]));

export function isMade(attribute: string): boolean {
  return MADE_BY_LOW.has(attribute.toLowerCase());
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
  const job = { id, stored, site };
  let text: string | undefined;
  // Most of what is asked of a job is its cluster's: to look for a name in the text costs less than to parse it.
  const peek = (low: string): string | null | undefined => {
    const made = MADE_BY_LOW.get(low);
    if (made) return made(job);
    text ??= stored.own.toLowerCase();
    return /^\w+$/.test(low) && !text.includes(`"${low}":`) ? null : undefined;
  };
  const attrs = new Attrs(() => ownOf(id, stored, site), cluster, peek);
  return { id, state, manager, site, attempt, priority, since, attrs };
}

/** The job's own attributes, with those that are derived from its fields. */
export function ownOf(id: JobId, stored: StoredJob, site: string): AttrTexts {
  const { own } = stored;
  const attrs = own === NO_ATTRS ? {} : readAttrTexts(own, `The queue's record of job ${id.cluster}.${id.proc}`);
  const job = { id, stored, site };
  for (const [name, text] of MADE) attrs[name] = text(job);
  return attrs;
}

/** JSON of the same. */
export function ownText(id: JobId, stored: StoredJob, site: string): string {
  const job = { id, stored, site };
  const made = MADE.map(([name, text]) => `"${name}":${JSON.stringify(text(job))}`).join();
  return stored.own === NO_ATTRS ? `{${made}}` : `${stored.own.slice(0, -1)},${made}}`;
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
