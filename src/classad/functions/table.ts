import { fold } from '../bytes.ts';
import { CONDOR } from './condor.ts';
import { CONTEXTS } from './contexts.ts';
import { CONTROL } from './control.ts';
import { CONVERSIONS } from './convert.ts';
import type { FunctionDefinition } from './definition.ts';
import { LISTS } from './lists.ts';
import { MATHS } from './math.ts';
import { REGEXES } from './regex.ts';
import { STRING_LISTS } from './string-lists.ts';
import { STRINGS } from './strings.ts';
import { TIMES } from './time.ts';

const TABLES = [CONDOR, CONTEXTS, CONTROL, CONVERSIONS, LISTS, MATHS, REGEXES, STRING_LISTS, STRINGS, TIMES];

let byName: ReadonlyMap<string, FunctionDefinition> | undefined;

/** Finds a builtin function by its name in any case. */
export function functionNamed(name: string): FunctionDefinition | undefined {
  byName ??= new Map(TABLES.flat().map(([each, definition]) => [fold(each), definition] as const));
  return byName.get(fold(name));
}

/** The names of all builtin functions as spelled in HTCondor's manual. */
export function functionNames(): string[] {
  return TABLES.flat().map(([name]) => name);
}
