import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import * as z from 'zod';
import { asError, GryphusError } from '../errors.ts';
import { makePrivateDirs, writeWhole } from '../util/private-file.ts';
import { readOwnText } from '../util/owned-file.ts';
import { parseAddress } from './address.ts';
import { duration, expression, flag, integer, oneOf, real, size, text, texts } from './kinds.ts';
import type { Paths } from './paths.ts';
import { entry, leavesOf, lineOf, readTable, type Source, type Values } from './table.ts';
import { parseToml, readSource } from './toml.ts';

/** How a borrowed job is kept from what belongs to the machine's owner. */
export const STRANGER_WAYS = ['auto', 'nobody', 'slot', 'subuid'] as const;
export type StrangerWay = (typeof STRANGER_WAYS)[number];

/** The most pools that a job is passed on through, beyond the first that borrows it. */
export const MOST_FURTHER = 3;

/** Every key of `flock/<name>.toml`: what two owners of pools agreed on. Once read, times are in seconds. */
export const AGREEMENT_KEYS = {
  url: entry(
    text,
    undefined,
    '`host:port` of their gateway (`flock.listen` there); without it, theirs connects to ours.',
  ),
  via: entry(text, undefined, 'A host of your ssh configuration through which `url` is reached (`ssh -W`).'),
  key: entry(text, undefined, 'The file with the key that both sides have; default: `NAME.key` beside the agreement.'),
  to: entry(flag, false, 'Our jobs may run there (FLOCK_TO).'),
  from: entry(flag, false, 'Their jobs may run here (FLOCK_FROM).'),
  paused: entry(flag, false, 'Neither for now: what runs is vacated after `retirement`.'),
  users: entry(texts, [], 'Their users whose jobs may run here; none named: all.'),
  deny: entry(texts, [], 'Their users whose jobs may not.'),
  own_users: entry(texts, [], 'Our users whose jobs may go there; none named: all.'),
  requirements: entry(
    expression,
    undefined,
    'Whether a job of theirs may run here, an expression over their job (TARGET) and our machine (MY).',
  ),
  threshold: entry(integer(0), 0, 'Idle cores that are not lent: only what is idle beyond them is.'),
  max: entry(integer(0), 8, 'The most of our cores that their jobs hold at once.'),
  hours: entry(
    expression,
    undefined,
    'When we lend, an expression over ClockMin and ClockDay, such as `ClockMin < 480`.',
  ),
  retirement: entry(duration, 0, 'A job of theirs runs at least this long before a job of ours takes its place.'),
  wait: entry(duration, 0, 'How long jobs of ours wait for our own machines before they may go there.'),
  balance: entry(
    oneOf(['none', 'day', 'month']),
    'none',
    'Over a day or 30 days, either side uses about as much of the other: we lend no more than we borrowed, plus `slack`.',
  ),
  slack: entry(real(0), 10, 'Core hours by which that balance may differ.'),
  run_as: entry(
    oneOf(STRANGER_WAYS),
    'auto',
    'As whom their jobs run: `slot` accounts or `nobody` (a worker of root), `subuid` (a subordinate user id, by newuidmap).',
  ),
  network: entry(flag, false, 'Their jobs may use our network.'),
  hops: entry(
    integer(0, MOST_FURTHER),
    0,
    'Through how many further pools our jobs may be passed on from there; 0: they run in that pool or not at all.',
  ),
  forward: entry(
    texts,
    [],
    'Other partners of ours, by their names here, to whom we pass on jobs of theirs, on machines that we may borrow.',
  ),
  forwarded: entry(flag, false, 'Jobs that they pass on for other pools may run here, as theirs may.'),
  max_input: entry(size, '1G', 'The most that the inputs of one job of theirs may take here.'),
  max_result: entry(
    size,
    '10G',
    'The most that the results of one job of ours may take, and that we accept from there.',
  ),
} as const;

/** HTCondor's words for a flock, and what stands for them here. */
const CONDOR_WORDS: Readonly<Record<string, string>> = {
  flock_to: "Each partner has its own agreement: write to = true in the partner's.",
  flock_from: "Each partner has its own agreement: write from = true in the partner's.",
  flock_increment: 'A waiting job is offered to all partners at once; wait = "5m" delays that for a partner.',
  want_flock: 'That is a command of a submit description.',
};

/** One partner, as `flock/NAME.toml` describes it, checked, with its defaults (docs/flock.md). */
export interface Agreement extends Omit<Values<typeof AGREEMENT_KEYS>, 'key'> {
  readonly name: string;
  /** The absolute path of the key's file. */
  readonly keyFile: string;
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export function flockDir({ configDir }: Pick<Paths, 'configDir'>): string {
  return join(configDir, 'flock');
}

export function agreementFile(paths: Pick<Paths, 'configDir'>, name: string): string {
  return join(flockDir(paths), `${name}.toml`);
}

/** The names of the partners that have a file. */
export function partnerNames(paths: Pick<Paths, 'configDir'>): string[] {
  const dir = flockDir(paths);
  if (!existsSync(dir)) return [];
  return readdirSync(dir)
    .filter((file) => file.endsWith('.toml'))
    .map((file) => file.slice(0, -'.toml'.length))
    .sort();
}

export function checkPartnerName(name: string): void {
  if (NAME.test(name)) return;
  throw new GryphusError('bad-input', `${JSON.stringify(name)} cannot be the name of a partner.`, {
    suggestions: ['Use up to 64 letters, digits, dots, dashes and underscores, a letter or digit first.'],
  });
}

/** Rejects with 'bad-config', file and line; with 'bad-input' if there is no such partner. */
export async function loadAgreement(paths: Pick<Paths, 'configDir'>, name: string): Promise<Agreement> {
  checkPartnerName(name);
  const file = agreementFile(paths, name);
  if (!existsSync(file))
    throw new GryphusError('bad-input', `There is no agreement with '${name}'.`, {
      suggestions: [`gryphus flock add ${name} --help   # says how to make one`],
    });
  return agreementOf(paths, name, readSource(file, paths));
}

async function agreementOf(paths: Pick<Paths, 'configDir'>, name: string, source: Source): Promise<Agreement> {
  const tree = await parseToml(source);
  for (const [key] of leavesOf(tree, AGREEMENT_KEYS)) {
    const instead = CONDOR_WORDS[key.toLowerCase()];
    if (instead === undefined) continue;
    const line = lineOf(source.text, key);
    throw new GryphusError('bad-config', `${source.file}, line ${line ?? '?'}: ${key} is not used in an agreement.`, {
      suggestions: [instead],
    });
  }
  const { key, ...values } = readTable(AGREEMENT_KEYS, tree, source);
  if (values.url !== undefined) parseAddress(values.url, `${source.file}: url`);
  if (values.via !== undefined && !/^[A-Za-z0-9][\w.@:-]*$/.test(values.via))
    throw new GryphusError(
      'bad-config',
      `${source.file}, line ${lineOf(source.text, 'via') ?? '?'}: 'via' must be a host of ssh.`,
      {
        suggestions: ['Write via = "user@host", or a Host of ~/.ssh/config.'],
      },
    );
  if (values.forward.includes(name))
    throw new GryphusError(
      'bad-config',
      `${source.file}, line ${lineOf(source.text, 'forward') ?? '?'}: jobs of ${name} are not passed on to ${name}.`,
      { suggestions: ['Name other partners, from whom we borrow.'] },
    );
  return { ...values, name, keyFile: keyPath(paths, name, key) };
}

function keyPath(paths: Pick<Paths, 'configDir'>, name: string, given: string | undefined): string {
  if (given === undefined) return join(flockDir(paths), `${name}.key`);
  if (given.startsWith('~/')) return join(homedir(), given.slice(2));
  return isAbsolute(given) ? given : join(flockDir(paths), given);
}

/** Writes an agreement's file, after checking it. */
export async function saveAgreement(
  paths: Pick<Paths, 'configDir'>,
  name: string,
  keys: Readonly<Record<string, string | number | boolean | readonly string[]>>,
): Promise<Agreement> {
  checkPartnerName(name);
  const { stringify } = await import('smol-toml');
  const source = { file: agreementFile(paths, name), text: stringify(keys) };
  const agreement = await agreementOf(paths, name, source);
  makePrivateDirs(dirname(source.file));
  writeWhole(source.file, source.text);
  return agreement;
}

/** Sets or clears `paused`; the rest of the file stays as it is. */
export async function pauseAgreement(paths: Pick<Paths, 'configDir'>, name: string, paused: boolean): Promise<void> {
  await loadAgreement(paths, name);
  const file = agreementFile(paths, name);
  const before = readSource(file, paths).text;
  const without = before.replace(/^\s*paused\s*=.*\n?/gm, '');
  writeWhole(file, paused ? `paused = true\n${without}` : without);
}

/** Removes an agreement and the key beside it. False if there was none. */
export function removeAgreement(paths: Pick<Paths, 'configDir'>, name: string): boolean {
  checkPartnerName(name);
  const file = agreementFile(paths, name);
  if (!existsSync(file)) return false;
  rmSync(file);
  rmSync(join(flockDir(paths), `${name}.key`), { force: true });
  return true;
}

/** What both sides of an agreement hold: the name by which the connecting side is known, and 32 secret bytes. */
const KEY = z.strictObject({ id: z.string().regex(/^[A-Za-z0-9_-]{8,64}$/), key: z.string().regex(/^[0-9a-f]{64}$/) });
export type FlockKey = z.infer<typeof KEY>;

/** Reads a key's file; 'bad-config' if it is none, 'not-permitted' if others can read it. */
export function readFlockKey(file: string, paths: Pick<Paths, 'configDir'>): FlockKey {
  const bad = (message: string, suggestion: string) =>
    new GryphusError('bad-config', `${file}: ${message}`, { suggestions: [suggestion] });
  const found = statSync(file, { throwIfNoEntry: false });
  if (!found)
    throw bad('there is no such key.', 'Make one with `gryphus flock add NAME --new-key FILE`, or copy theirs.');
  if ((found.mode & 0o077) !== 0) throw bad('others can read it.', `Run: chmod 600 '${file}'`);
  let value: unknown;
  try {
    value = JSON.parse(readOwnText(file, paths.configDir));
  } catch (thrown) {
    throw bad(`it is not a key: ${asError(thrown).message}.`, 'Copy it again from the side that made it.');
  }
  const { data } = KEY.safeParse(value);
  if (!data) throw bad('it is not a key of a flock.', 'Copy it again from the side that made it.');
  return data;
}

export function writeFlockKey(file: string, key: FlockKey): void {
  makePrivateDirs(dirname(file));
  writeWhole(file, `${JSON.stringify(KEY.parse(key))}\n`);
}

interface Page {
  readonly signature: string;
  readonly agreement: Agreement | undefined;
  readonly key: FlockKey | undefined;
  readonly problem: string | undefined;
}

/** A partner whose agreement and key can be read. */
export interface Partner {
  readonly agreement: Agreement;
  readonly key: FlockKey;
}

/**
 * The agreements as their files are now. A file that has become wrong leaves its last correct version in force, as
 * `problems` says. A key that can no longer be read is none: a removed or closed key revokes at once.
 */
export class AgreementBook {
  readonly #paths: Pick<Paths, 'configDir'>;
  readonly #wrong: (message: string) => void;
  readonly #pages = new Map<string, Page>();

  constructor(paths: Pick<Paths, 'configDir'>, wrong: (message: string) => void = () => undefined) {
    this.#paths = paths;
    this.#wrong = wrong;
  }

  /** Reads what has changed. True if anything did. */
  async look(): Promise<boolean> {
    const names = partnerNames(this.#paths).filter((name) => NAME.test(name));
    let changed = false;
    for (const name of this.#pages.keys()) if (!names.includes(name)) changed = this.#pages.delete(name) || changed;
    for (const name of names) changed = (await this.#read(name)) || changed;
    return changed;
  }

  get partners(): ReadonlyMap<string, Partner> {
    return new Map(
      [...this.#pages].flatMap(([name, { agreement, key }]) =>
        agreement && key ? [[name, { agreement, key }] as const] : [],
      ),
    );
  }

  /** All that have a file, right or wrong. */
  get names(): ReadonlySet<string> {
    return new Set(this.#pages.keys());
  }

  get problems(): ReadonlyMap<string, string> {
    return new Map(
      [...this.#pages].flatMap(([name, { problem }]) => (problem === undefined ? [] : [[name, problem] as const])),
    );
  }

  async #read(name: string): Promise<boolean> {
    const known = this.#pages.get(name);
    const file = agreementFile(this.#paths, name);
    const keyFile = known?.agreement?.keyFile ?? keyPath(this.#paths, name, undefined);
    if (known?.signature === `${signatureOf(file)} ${signatureOf(keyFile)}`) return false;
    let agreement = known?.agreement;
    const problems: string[] = [];
    try {
      agreement = await loadAgreement(this.#paths, name);
    } catch (thrown) {
      problems.push(asError(thrown).message);
    }
    let key: FlockKey | undefined;
    try {
      key = readFlockKey(agreement?.keyFile ?? keyFile, this.#paths);
    } catch (thrown) {
      problems.push(asError(thrown).message);
    }
    const problem = problems.length === 0 ? undefined : problems.join(' ');
    if (problem !== undefined && problem !== known?.problem) this.#wrong(problem);
    const signature = `${signatureOf(file)} ${signatureOf(agreement?.keyFile ?? keyFile)}`;
    this.#pages.set(name, { signature, agreement, key, problem });
    return true;
  }
}

/** Differs after each write and each change of permissions. */
function signatureOf(file: string): string {
  const found = statSync(file, { throwIfNoEntry: false });
  return found ? `${found.ino}:${found.size}:${found.mtimeMs}:${found.ctimeMs}` : '';
}
