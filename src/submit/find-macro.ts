/** `$(name)`, `$(name:default)` or `$FUNC(body)` in a text. */
export interface FoundMacro {
  readonly start: number;
  readonly end: number;
  /** The function's name; '' for a plain reference. */
  readonly func: string;
  readonly body: string;
  /** The first `$` from where the search began; nothing before it can become part of a macro. */
  readonly firstDollar: number;
}

const FUNCTIONS = new Set([
  'ENV',
  'RANDOM_CHOICE',
  'RANDOM_INTEGER',
  'CHOICE',
  'SUBSTR',
  'INT',
  'REAL',
  'STRING',
  'EVAL',
  'BASENAME',
  'DIRNAME',
]);

/** Allowed after the colon of a default, in addition to the characters of a name. */
const IN_DEFAULT = '$ ,\\:';

export function isFilenameFunction(func: string): boolean {
  return /^F[pnxdqabfwu]*$/i.test(func) && func.startsWith('F');
}

function isFunction(func: string): boolean {
  return FUNCTIONS.has(func) || isFilenameFunction(func);
}

/** A letter, a digit or an underscore. */
function isWordUnit(unit: number): boolean {
  return (unit >= 48 && unit <= 57) || (unit >= 65 && unit <= 90) || unit === 95 || (unit >= 97 && unit <= 122);
}

/** The characters of a macro's name. */
function isNameUnit(unit: number): boolean {
  return isWordUnit(unit) || unit === 46 || unit === 47;
}

/**
 * Where the body starting at `from` ends, or -1 if it is invalid. A plain reference has a name and a default as its
 * body.
 */
function bodyEnd(text: string, from: number, plain: boolean): number {
  if (!plain) return text.indexOf(')', from);
  let inDefault = false;
  let at = from;
  while (at < text.length && text[at] !== ')') {
    const char = text.charAt(at++);
    if (char === ':' && !inDefault) {
      inDefault = true;
      continue;
    }
    if (inDefault && char === '(') {
      const close = text.indexOf(')', at);
      if (close >= 0) {
        at = close + 1;
        continue;
      }
    } else if (inDefault && IN_DEFAULT.includes(char)) continue;
    if (!isNameUnit(char.charCodeAt(0))) return -1;
  }
  return at < text.length ? at : -1;
}

/**
 * The first macro from `from` on that `accept` accepts. `$$(…)` does not count: it is expanded once the job has a
 * machine.
 */
export function findMacro(
  text: string,
  from: number,
  accept: (func: string, body: string) => boolean,
): FoundMacro | undefined {
  const firstDollar = text.indexOf('$', from);
  let at = firstDollar;
  while (at >= 0) {
    const start = at;
    let after = start + 1;
    if (text[after] === '$') after++;
    while (isWordUnit(text.charCodeAt(after))) after++;
    const func = text.slice(start + 1, after);
    if (text[after] !== '(' || (func !== '' && !isFunction(func))) {
      at = text.indexOf('$', after);
      continue;
    }
    const end = bodyEnd(text, after + 1, func === '' || func === 'ENV');
    if (end < 0) at = text.indexOf('$', after + 1);
    else if (!accept(func, text.slice(after + 1, end))) at = text.indexOf('$', end);
    else return { start, end: end + 1, func, body: text.slice(after + 1, end), firstDollar };
  }
  return undefined;
}
