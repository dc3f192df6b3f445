import { parseWholeExpr } from '../classad/api.ts';
import { asError } from '../errors.ts';

/** A kind of value that a configuration key may have. */
export interface KeyKind<T> {
  /** Completes "must be …". */
  readonly says: string;
  /** What is wrong with a value that must not be shown, without showing it. */
  readonly hides?: (raw: unknown) => string | undefined;
  /** What is wrong with an invalid value, if more can be said than what it must be. */
  readonly faultIn?: (raw: unknown) => Fault | undefined;
  /** The value, or `undefined` if `raw` (as read from TOML) is invalid. */
  read(raw: unknown): T | undefined;
}

/** What is wrong with a value, or with one of the entries of a table. */
export interface Fault {
  /** The entry's name. */
  readonly name?: string;
  /** Follows the key's name. */
  readonly message: string;
}

export const text: KeyKind<string> = {
  says: 'a string',
  read: (raw) => (typeof raw === 'string' && raw !== '' ? raw : undefined),
};

/** A directory at a site. No shell reads it: `$SCRATCH` and `~user` would become names of directories. */
export const remoteDirectory: KeyKind<string> = {
  says: 'a directory without variables, such as "/scratch/me" or "~/jobs"',
  read: (raw) => (typeof raw === 'string' && raw !== '' && !/^(\$|~(?!\/|$))/.test(raw) ? raw : undefined),
};

/** A ClassAd expression, kept as its text. */
export const expression: KeyKind<string> = {
  says: 'a ClassAd expression (a string)',
  read: (raw) => (typeof raw === 'string' && syntaxError(raw) === undefined ? raw : undefined),
  faultIn: (raw) => {
    const found = typeof raw === 'string' ? syntaxError(raw) : undefined;
    return found === undefined
      ? undefined
      : { message: `must be a ClassAd expression, not ${JSON.stringify(raw)}: ${found}` };
  },
};

/** Where and how the syntax of an expression is wrong, if it is. */
function syntaxError(text: string): string | undefined {
  try {
    parseWholeExpr(text);
    return undefined;
  } catch (thrown) {
    return asError(thrown).message.replace(/^line 1, /, '');
  }
}

const NAME = /^[A-Za-z_]\w*$/;

/**
 * A table of ClassAd expressions by attribute name; numbers and booleans stand for themselves. `refusal`: why a name
 * must not be used, if so.
 */
export function expressionsBy(
  refusal: (name: string) => string | undefined,
): KeyKind<Readonly<Record<string, string>>> {
  const written = (value: unknown) => (typeof value === 'number' || typeof value === 'boolean' ? String(value) : value);
  const faultOf = (name: string, value: unknown): string | undefined => {
    if (!NAME.test(name)) return 'is not the name of an attribute';
    return (
      refusal(name) ??
      (expression.read(written(value)) === undefined
        ? (expression.faultIn?.(value)?.message ?? `must be ${expression.says}, not ${JSON.stringify(value)}`)
        : undefined)
    );
  };
  return tableOf('a table of ClassAd expressions by name', faultOf, (value) => String(written(value)));
}

/** A table of amounts by name. `refusal`: why a name must not be used, if so. */
export function amountsBy(
  refusal: (name: string) => string | undefined,
  names: RegExp = NAME,
): KeyKind<Readonly<Record<string, number>>> {
  const faultOf = (name: string, value: unknown): string | undefined => {
    if (!names.test(name)) return 'is not a name';
    const isAmount = typeof value === 'number' && value >= 0 && Number.isFinite(value);
    return refusal(name) ?? (isAmount ? undefined : `must be a number of at least 0, not ${JSON.stringify(value)}`);
  };
  return tableOf('a table of numbers of at least 0 by name', faultOf, Number);
}

/** Names with dots, such as those of accounting groups. */
export const namedAmounts = amountsBy(() => undefined, /^[A-Za-z_][\w.-]*$/);

function tableOf<T>(
  says: string,
  faultOf: (name: string, value: unknown) => string | undefined,
  read: (value: unknown) => T,
): KeyKind<Readonly<Record<string, T>>> {
  const entriesOf = (raw: unknown): readonly (readonly [string, unknown])[] | undefined =>
    typeof raw !== 'object' || raw === null || Array.isArray(raw) || raw instanceof Date
      ? undefined
      : Object.entries(raw);
  const faultIn = (raw: unknown): Fault | undefined => {
    for (const [name, value] of entriesOf(raw) ?? []) {
      const message = faultOf(name, value);
      if (message !== undefined) return { name, message };
    }
    return undefined;
  };
  return {
    says,
    faultIn,
    read: (raw) => {
      const entries = entriesOf(raw);
      if (entries === undefined || faultIn(raw)) return undefined;
      return Object.fromEntries(entries.map(([name, value]) => [name, read(value)]));
    },
  };
}

export const flag: KeyKind<boolean> = {
  says: 'true or false',
  read: (raw) => (typeof raw === 'boolean' ? raw : undefined),
};

export const texts: KeyKind<readonly string[]> = {
  says: 'a list of strings',
  read: (raw) => (Array.isArray(raw) && raw.every((one) => typeof one === 'string') ? raw : undefined),
};

/** Directories, each with `:rw` behind it or not. */
export const directories: KeyKind<readonly string[]> = {
  says: 'a list of directories such as ["~/data", "/scratch/me:rw"]',
  read: (raw) => {
    const list = texts.read(raw);
    return list?.every((one) => /^(\/|~(\/|$|:rw$))/.test(one) && !one.includes('\0')) ? list : undefined;
  },
};

/** True or false for all, or a list of names for which it is true. */
export const flagOrTexts: KeyKind<boolean | readonly string[]> = {
  says: 'true, false or a list of strings',
  read: (raw) => flag.read(raw) ?? texts.read(raw),
};

export function integer(least: number, most: number = Number.MAX_SAFE_INTEGER): KeyKind<number> {
  const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
  return {
    says: `a whole number ${range}`,
    read: (raw) =>
      typeof raw === 'number' && Number.isSafeInteger(raw) && raw >= least && raw <= most ? raw : undefined,
  };
}

export function real(least: number): KeyKind<number> {
  return {
    says: `a number of at least ${least}`,
    read: (raw) => (typeof raw === 'number' && Number.isFinite(raw) && raw >= least ? raw : undefined),
  };
}

export function oneOf<const T extends string>(words: readonly T[]): KeyKind<T> {
  return {
    says: `one of ${words.map((word) => `"${word}"`).join(', ')}`,
    read: (raw) => words.find((word) => word === raw),
  };
}

export function someOf<const T extends string>(words: readonly T[]): KeyKind<readonly T[]> {
  return {
    says: `a list of ${words.map((word) => `"${word}"`).join(', ')}`,
    read: (raw) => {
      if (!Array.isArray(raw)) return undefined;
      const all = raw.map((one) => words.find((word) => word === one));
      return all.every((one) => one !== undefined) ? all : undefined;
    },
  };
}

const SECONDS: Readonly<Record<string, number>> = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };

/** Seconds. `"1h30m"`, `"500ms"`, or a bare number of seconds. */
export const duration: KeyKind<number> = {
  says: 'a time like "30s", "5m", "1h30m" or "7d"',
  read: (raw) => {
    if (typeof raw === 'number') return Number.isFinite(raw) && raw >= 0 ? raw : undefined;
    if (typeof raw !== 'string' || !/^(\d+(\.\d+)?(ms|[smhdw]))+$/.test(raw)) return undefined;
    let sum = 0;
    for (const [, count, unit] of raw.matchAll(/(\d+(?:\.\d+)?)(ms|[smhdw])/g))
      sum += Number(count) * (SECONDS[unit ?? ''] ?? 0);
    return sum;
  },
};

/** The same, longer than none: something is done after each such time. */
export const interval: KeyKind<number> = {
  says: 'a time of at least 0.1 s, like "30s", "5m" or "1h30m"',
  read: (raw) => {
    const seconds = duration.read(raw);
    return seconds !== undefined && seconds >= 0.1 ? seconds : undefined;
  },
};

/** A list of seconds. */
export const durations: KeyKind<readonly number[]> = {
  says: 'a list of times like ["7d", "1d", "1h"]',
  read: (raw) => {
    if (!Array.isArray(raw)) return undefined;
    const all = raw.map((one) => duration.read(one));
    return all.every((one) => one !== undefined) ? all : undefined;
  },
};

const BYTES: Readonly<Record<string, number>> = { '': 1, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30, T: 2 ** 40 };

/** Bytes; K, M, G, T are powers of 1024. */
export const size: KeyKind<number> = {
  says: 'a size like "500M" or "10G"',
  read: (raw) => {
    if (typeof raw === 'number') return Number.isSafeInteger(raw) && raw >= 0 ? raw : undefined;
    const found = typeof raw === 'string' ? /^(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?$/i.exec(raw) : null;
    return found ? Math.round(Number(found[1]) * (BYTES[(found[2] ?? '').toUpperCase()] ?? 1)) : undefined;
  },
};

/** The same, of memory: a number without a letter is bytes here, and was hardly meant so. */
export const memorySize: KeyKind<number> = {
  says: 'a size of at least 1M, like "500M" or "10G"',
  read: (raw) => {
    const bytes = size.read(raw);
    return bytes !== undefined && bytes >= 2 ** 20 ? bytes : undefined;
  },
};

/** Unix seconds. A date without a time means the end of that day, UTC, so that the day itself is included. */
export const moment: KeyKind<number> = {
  says: 'a time like 2026-12-31 or 2026-12-31T18:00:00Z',
  read: (raw) => {
    const written = raw instanceof Date ? raw.toISOString() : typeof raw === 'string' ? raw.trim() : '';
    if (/^\d{4}-\d\d-\d\d$/.test(written)) {
      const day = Date.parse(`${written}T00:00:00Z`);
      return Number.isNaN(day) ? undefined : day / 1000 + 86_400;
    }
    if (!/^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?$/i.test(written)) return undefined;
    const at = Date.parse(/(Z|[+-]\d\d:\d\d)$/i.test(written) ? written : `${written}Z`);
    return Number.isNaN(at) ? undefined : Math.floor(at / 1000);
  },
};

/** An absolute path; `~/` is the home directory. */
export const path: KeyKind<string> = {
  says: 'an absolute path, or one that begins with ~/',
  read: (raw) => (typeof raw === 'string' && /^(\/|~\/)[^\0]*$/.test(raw) ? raw : undefined),
};
