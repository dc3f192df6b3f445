import { isSpace, trimEnd, trimStart } from './text.ts';

/** A parsed line of a submit description. `bare`: it lacks an operator, so it may be a queue statement. */
export type Statement =
  | { readonly kind: 'bare' }
  | { readonly kind: 'include'; readonly options: string; readonly target: string }
  | { readonly kind: 'use'; readonly category: string; readonly names: string }
  | { readonly kind: 'say'; readonly error: boolean; readonly text: string }
  | { readonly kind: 'block'; readonly name: string; readonly tag: string }
  | { readonly kind: 'append'; readonly name: string; readonly joint: string; readonly value: string }
  | { readonly kind: 'assign'; readonly name: string; readonly value: string }
  | { readonly kind: 'other'; readonly name: string };

interface Split {
  readonly name: string;
  /** '', '=', ':', '@=' or '+=' */
  readonly op: string;
  /** What joins the two values of `+=`. */
  readonly joint: string;
  /** The text between the name and the operator. */
  readonly message: string;
  readonly rest: string;
}

const JOINTS = ',;|&*';

function operatorAt(text: string, at: number): { readonly op: string; readonly joint: string; readonly end: number } {
  const char = text.charAt(at);
  if (char === '=' || char === ':') return { op: char, joint: '', end: at + 1 };
  if (char === '@')
    return text[at + 1] === '=' ? { op: '@=', joint: '', end: at + 2 } : { op: '', joint: '', end: at + 1 };
  let end = at + 1;
  const separator = text.charAt(end);
  let joint = ' ';
  if (separator !== '' && JOINTS.includes(separator)) {
    joint = separator;
    end++;
    if (text[end] === separator) {
      joint = ` ${separator}${separator} `;
      end++;
    }
  }
  return text[end] === '=' ? { op: '+=', joint, end: end + 1 } : { op: '', joint: '', end };
}

function split(text: string): Split | undefined {
  let end = 0;
  while (end < text.length && !isSpace(text.charAt(end)) && text[end] !== '=' && text[end] !== ':') end++;
  if (end === text.length) return undefined;
  const name = text.slice(0, end);
  let at = end;
  while (isSpace(text.charAt(at)) && at < text.length) at++;
  const wordsAt = at;
  while (at < text.length && !'=:@+'.includes(text.charAt(at))) at++;
  if (at === text.length) return { name, op: '', joint: '', message: text.slice(wordsAt), rest: '' };
  const operator = operatorAt(text, at);
  return {
    name,
    op: operator.op,
    joint: operator.joint,
    message: trimEnd(text.slice(wordsAt, at)),
    rest: trimStart(text.slice(operator.end)),
  };
}

/** Parses a line; names are not expanded yet. */
export function parseStatement(text: string): Statement {
  const parts = split(text);
  if (!parts) return { kind: 'bare' };
  const { name, op, message, rest } = parts;
  const keyword = op === ':' ? name.replace(/^@/, '').toLowerCase() : '';
  if (keyword === 'include') return { kind: 'include', options: message, target: rest };
  if (keyword === 'use') return { kind: 'use', category: message, names: rest };
  if (keyword === 'error' || keyword === 'warning') return { kind: 'say', error: keyword === 'error', text: rest };
  if (message !== '') return { kind: 'bare' };
  if (op === '' || op === ':' || name.toLowerCase() === 'queue') return { kind: 'other', name };
  if (op === '@=') return { kind: 'block', name, tag: rest };
  if (op === '+=') return { kind: 'append', name, joint: parts.joint, value: rest };
  return { kind: 'assign', name, value: rest };
}

export type IncludeOptions =
  | { readonly ok: true; readonly mustExist: boolean; readonly command: boolean; readonly into: string | undefined }
  | { readonly ok: false; readonly wrong: string };

/** `[ifexist] [command|output [into FILE]]` between `include` and the colon. */
export function parseIncludeOptions(text: string): IncludeOptions {
  const found = /^(ifexists?)?\s*(?:(command|output)(?:\s+into(?:\s+(\S+))?)?)?$/.exec(text);
  const into = /\binto\b/.test(text);
  if (!found || (into && found[3] === undefined)) {
    return { ok: false, wrong: `unexpected keyword(s) '${text}' after include` };
  }
  return { ok: true, mustExist: found[1] === undefined, command: found[2] !== undefined, into: found[3] };
}
