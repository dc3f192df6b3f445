import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { CANDIDATE_LIFE, CANDIDATE_STATES } from '../job/candidate-life.ts';
import { isEnd, JOB_STATUS, LIFE, STATES } from '../job/life.ts';

export type ScriptName =
  | 'begin'
  | 'candidate'
  | 'change'
  | 'drop'
  | 'edit-cluster'
  | 'find'
  | 'heads'
  | 'intern'
  | 'kv'
  | 'lease'
  | 'incarnation'
  | 'materialize'
  | 'next'
  | 'next-candidates'
  | 'publish'
  | 'restore'
  | 'take-over'
  | 'retire'
  | 'skip'
  | 'stage'
  | 'summaries'
  | 'trim'
  | 'unwant'
  | 'upgrade';

/** A script in the form that Redis takes. */
export interface Script {
  readonly text: string;
  readonly sha1: string;
}

const scripts = new Map<string, Script>();

/** The script of that name, for keys with this `prefix`. The table of a job's states is generated from life.ts. */
export function script(name: ScriptName, prefix: string): Script {
  const key = `${prefix} ${name}`;
  const known = scripts.get(key);
  if (known) return known;
  const text = [`local K = ${quote(prefix)}`, lifeInLua(), lua('prelude'), lua(name)].join('\n');
  const made = { text, sha1: createHash('sha1').update(text).digest('hex') };
  scripts.set(key, made);
  return made;
}

function lua(name: string): string {
  return readFileSync(new URL(`./lua/${name}.lua`, import.meta.url), 'utf8');
}

function lifeInLua(): string {
  const life = STATES.map((state) => {
    const arrows = Object.entries(LIFE[state].on).map(([event, to]) => `[${quote(event)}]=${quote(to)}`);
    return `[${quote(state)}]={${arrows.join(',')}}`;
  });
  const candidates = CANDIDATE_STATES.map((state) => {
    const arrows = Object.entries(CANDIDATE_LIFE[state].on).map(([event, to]) => `[${quote(event)}]=${quote(to)}`);
    return `[${quote(state)}]={${arrows.join(',')}}`;
  });
  const shows = STATES.map((state) => `[${quote(state)}]=${quote(LIFE[state].shows)}`);
  const status = STATES.map((state) => `[${quote(state)}]=${quote(String(JOB_STATUS[LIFE[state].shows]))}`);
  const ends = STATES.filter(isEnd).map((state) => `[${quote(state)}]=true`);
  return [
    `local LIFE = {${life.join(',')}}`,
    `local CANDIDATES = {${candidates.join(',')}}`,
    `local SHOWS = {${shows.join(',')}}`,
    `local STATUS = {${status.join(',')}}`,
    `local ENDS = {${ends.join(',')}}`,
    // `kept` is not routable, although no work is done there: the job's results are at a site.
    `local ROUTABLE = {idle=true,held=true}`,
  ].join('\n');
}

function quote(text: string): string {
  return `'${text.replaceAll(/[\\']/g, (c) => `\\${c}`)}'`;
}
