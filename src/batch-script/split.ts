import { GryphusError } from '../errors.ts';
import { didYouMean } from '../util/did-you-mean.ts';
import type { Dialect, Option, System } from './model.ts';
import { DIALECTS } from './read.ts';

/** Options of a command itself, which are in no table of directives: by name, and whether they take a value. */
export type OwnOptions = ReadonlyMap<string, Option['value']>;

/** An option of a submit command, with the words that it was written with. */
export interface SplitOption {
  readonly name: string;
  readonly value: string;
  readonly words: readonly string[];
}

/** The options of a system's submit command that are taken here. */
export function optionsOf(
  system: System,
): readonly { readonly names: readonly string[]; readonly value?: Option['value'] }[] {
  return DIALECTS[system].options
    .filter(({ fate }) => fate !== 'refused')
    .map(({ names, value }) => ({ names: names.split(' '), ...(value && { value }) }));
}

/**
 * Separates a submit command's options from the script and its arguments. Throws GryphusError 'usage' if an option is not known or lacks its value.
 */
export function splitOptions(
  system: System,
  words: readonly string[],
  own: OwnOptions,
): { readonly options: readonly SplitOption[]; readonly rest: readonly string[] } {
  const takes = new Map<string, Option['value']>();
  const { long } = DIALECTS[system];
  for (const { names, value } of DIALECTS[system].options) for (const name of names.split(' ')) takes.set(name, value);
  for (const [name, value] of own) if (!takes.has(name)) takes.set(name, value);
  const options: SplitOption[] = [];
  let i = 0;
  for (; i < words.length; i++) {
    const word = words[i] ?? '';
    if (word === '--') return { options, rest: words.slice(i + 1) };
    if (!word.startsWith('-') || word === '-') break;
    const equals = word.startsWith('--') ? word.indexOf('=') : -1;
    const written = equals < 0 ? word : word.slice(0, equals);
    const name = wholeName(takes, written);
    mustBe(takes, name, DIALECTS[system]);
    if (equals >= 0) options.push({ name, value: word.slice(equals + 1), words: [word] });
    else if (!takes.has(name) && !word.startsWith('--'))
      options.push({ name: word.slice(0, 2), value: word.slice(2), words: [word] });
    else {
      const used = valuesOf(name, takes.get(name), words[i + 1], long);
      const values = words.slice(i + 1, i + 1 + used);
      if (values.length < used) throw new GryphusError('usage', `option '${word}' requires an argument`);
      options.push({ name, value: values.join(' '), words: [word, ...values] });
      i += used;
    }
  }
  return { options, rest: words.slice(i) };
}

/** Here, so that a wrong option is reported before the script is read, which may be standard input. */
function mustBe(names: ReadonlyMap<string, unknown>, name: string, { title, long }: Dialect): void {
  const joined = !name.startsWith('--') && names.has(name.slice(0, 2));
  // Whoever shortens a name too much is told what it may mean, by the reader of the options.
  const short = name.startsWith('--') && long && [...names.keys()].some((one) => one.startsWith(name));
  if (names.has(name) || joined || short) return;
  const near = didYouMean(name, names.keys());
  const suggestions = near === undefined ? [] : [`Did you mean ${near}?`];
  throw new GryphusError('usage', `${title} has no option ${name}`, { suggestions });
}

/** How many of the following words are the option's value. Grid Engine's `-pe` has two; its `-j` may be followed by y or n. */
function valuesOf(name: string, value: string | undefined, next: string | undefined, long: boolean): number {
  if (name === '-pe') return 2;
  if (value === 'optional') return !long && /^(y|yes|n|no)$/i.test(next ?? '') ? 1 : 0;
  return value === 'needed' ? 1 : 0;
}

/** A long name may be shortened. */
function wholeName(names: ReadonlyMap<string, unknown>, written: string): string {
  if (names.has(written) || !written.startsWith('--')) return written;
  const near = [...names.keys()].filter((name) => name.startsWith(written));
  return near.length === 1 ? (near[0] ?? written) : written;
}
