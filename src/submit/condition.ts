import { TEMPLATES } from './templates.ts';
import { trim, trimEnd, trimStart } from './text.ts';

/** The HTCondor version for `if version`: the one whose behaviour this module was compared with. */
export const COMPATIBLE_VERSION = [25, 14, 0] as const;

export type ConditionVerdict =
  | { readonly ok: true; readonly value: boolean }
  | { readonly ok: false; readonly reason: string };

export interface ConditionScope {
  expand(text: string): string;
  lookup(name: string): string | undefined;
}

const NUMBER = /^-?(?=.*\d)[\d.]+([eE][+-]?[\d.]*)?$/;
const IDENTIFIER = /^[A-Za-z0-9_./]+$/;
const WORDS: Readonly<Record<string, boolean>> = { yes: true, t: true, no: false, f: false };

function fails(reason: string): ConditionVerdict {
  return { ok: false, reason };
}

function word(text: string): boolean | undefined {
  return Object.hasOwn(WORDS, text.toLowerCase()) ? WORDS[text.toLowerCase()] : undefined;
}

function compareVersions(theirs: readonly number[]): number {
  for (let i = 0; i < COMPATIBLE_VERSION.length; i++) {
    const ours = COMPATIBLE_VERSION[i] ?? 0;
    const difference = ours - (theirs[i] ?? ours);
    if (difference !== 0) return Math.sign(difference);
  }
  return 0;
}

function isVersionTest(text: string): boolean {
  if (/^version$/i.test(text)) return true;
  const signs = text.replaceAll('!=', '=');
  const only = /^version(?![A-Za-z0-9])[A-Za-z0-9.<=>\s]+$/i.test(signs);
  return only && /\s/.test(signs) && /[<=>]/.test(signs) && /\d/.test(signs);
}

function versionTest(text: string): ConditionVerdict {
  const found = /^version\s*(!?)([<=>]?)(=?)\s*[vV]?(-?\d+)\.(\d+)(?:\.(\d+))?/i.exec(text);
  if (!found || Number(found[4]) < 6) return fails('the version literal is invalid');
  const theirs = [Number(found[4]), Number(found[5]), ...(found[6] === undefined ? [] : [Number(found[6])])];
  const difference = compareVersions(theirs);
  const wanted = { '<': -1, '>': 1 }[found[2] ?? ''] ?? 0;
  const value = difference === wanted || (found[3] === '=' && difference === 0);
  return { ok: true, value: found[1] === '!' ? !value : value };
}

function isDefinedTest(text: string): boolean {
  return /^defined(?![A-Za-z0-9])[A-Za-z0-9_./\s:]*$/i.test(text);
}

function definedTest(text: string, scope: ConditionScope): ConditionVerdict {
  const name = trimStart(text.slice('defined'.length));
  if (name === '') return { ok: true, value: false };
  if (NUMBER.test(name) || /^(true|false)$/i.test(name)) return { ok: true, value: true };
  if (/^use\s/i.test(name)) return templateTest(trim(name.slice('use'.length)));
  if (!IDENTIFIER.test(name)) return fails('defined argument must be param name, boolean, or number');
  const value = scope.lookup(name);
  return { ok: true, value: value === undefined ? word(name) !== undefined : value !== '' };
}

/** `defined use CATEGORY[:TEMPLATE]` tests for a template of HTCondor's configuration. */
function templateTest(text: string): ConditionVerdict {
  if (/\s/.test(text)) return fails('defined use meta argument with internal spaces will never match');
  const [category = '', template = ''] = text.toLowerCase().split(/:(.*)/s);
  const known = Object.hasOwn(TEMPLATES, category) ? TEMPLATES[category] : undefined;
  return { ok: true, value: known !== undefined && (template === '' || known.includes(template)) };
}

function plainTest(text: string, scope: ConditionScope): ConditionVerdict {
  if (NUMBER.test(text)) return { ok: true, value: Number.parseFloat(text) !== 0 };
  if (/^(true|false)$/i.test(text)) return { ok: true, value: text.toLowerCase() === 'true' };
  const crufty = word(text);
  if (crufty !== undefined) return { ok: true, value: crufty };
  if (isVersionTest(text)) return versionTest(text);
  if (isDefinedTest(text)) return definedTest(text, scope);
  const simple = text === '' || IDENTIFIER.test(text) || /^[A-Za-z0-9_./:$(]*\$\([A-Za-z0-9_./:$(]*$/.test(text);
  return fails(simple ? 'expression is not a conditional' : 'complex conditionals are not supported');
}

/**
 * What can follow `if` and `elif`: true, false, yes, no, t, f, a number, `defined NAME`, `version OP x.y[.z]`, after at
 * most one `!` (manual, "Using Conditionals in the Submit Description File"). A macro that expands to nothing is false.
 */
export function testCondition(text: string, scope: ConditionScope): ConditionVerdict {
  const hasMacro = text.includes('$');
  const expanded = trimStart(hasMacro ? trimEnd(scope.expand(text)) : text);
  const inverted = expanded.startsWith('!');
  const rest = trim(inverted ? expanded.slice(1) : expanded);
  const verdict: ConditionVerdict = hasMacro && rest === '' ? { ok: true, value: false } : plainTest(rest, scope);
  return verdict.ok && inverted ? { ok: true, value: !verdict.value } : verdict;
}

interface Level {
  /** The current branch is taken. */
  taken: boolean;
  /** Some branch of this if has been taken already. */
  done: boolean;
  inElse: boolean;
}

/** The ifs around a line. */
export class IfStack {
  readonly #levels: Level[] = [];

  get enabled(): boolean {
    return this.#levels.every((level) => level.taken);
  }

  get inside(): boolean {
    return this.#levels.length > 0;
  }

  /** Handles the line if it is if, elif, else or endif; errors are returned as text. */
  take(line: string, scope: ConditionScope): { readonly taken: boolean; readonly wrong?: string } {
    const found = /^(if|elif|else|endif)(?:\s+(.*))?$/is.exec(line);
    const keyword = found?.[1]?.toLowerCase();
    if (keyword === undefined) return { taken: false };
    const rest = found?.[2] ?? '';
    const wrong =
      keyword === 'if'
        ? this.#if(rest, scope)
        : keyword === 'elif'
          ? this.#elif(rest, scope)
          : keyword === 'else'
            ? this.#else()
            : this.#endif();
    return wrong === undefined ? { taken: true } : { taken: true, wrong };
  }

  #if(condition: string, scope: ConditionScope): string | undefined {
    let value = false;
    if (this.enabled) {
      const verdict = testCondition(condition, scope);
      if (!verdict.ok) return `${condition} is not a valid if condition because ${verdict.reason}`;
      value = verdict.value;
    }
    if (this.#levels.length >= 62) return 'if nesting too deep!';
    this.#levels.push({ taken: value, done: value, inElse: false });
    return undefined;
  }

  #elif(condition: string, scope: ConditionScope): string | undefined {
    const level = this.#levels.at(-1);
    if (!level) return 'elif without matching if';
    if (level.inElse) return 'elif is not allowed after else';
    let value = false;
    if (!level.done && this.#levels.slice(0, -1).every((outer) => outer.taken)) {
      const verdict = testCondition(condition, scope);
      if (!verdict.ok) return `${condition} is not a valid elif condition because ${verdict.reason}`;
      value = verdict.value;
    }
    level.taken = value;
    level.done ||= value;
    return undefined;
  }

  #else(): string | undefined {
    const level = this.#levels.at(-1);
    if (!level) return 'else without matching if';
    if (level.inElse) return 'else is not allowed after else';
    level.inElse = true;
    level.taken = !level.done;
    return undefined;
  }

  #endif(): string | undefined {
    return this.#levels.pop() ? undefined : 'endif without matching if';
  }
}
