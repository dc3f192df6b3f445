import { lstatSync, readFileSync } from 'node:fs';
import { integer, oneOf } from '../../config/kinds.ts';
import { ownExpressions, POLICY_KEYS, type PolicyKeyValues } from '../../config/policy-keys.ts';
import type { PolicyTexts } from '../../config/owner-policies.ts';
import { entry, leavesOf, readTable } from '../../config/table.ts';
import { parseToml } from '../../config/toml.ts';
import { GryphusError } from '../../errors.ts';
import type { Off } from './machine-life.ts';

/** Where the administrator of a machine says what workers of all users may do there. */
export const ROOT_POLICY_FILE = '/etc/gryphus/owner-policy.toml';

const KEYS = {
  ...POLICY_KEYS,
  off: entry(oneOf(['now', 'graceful', 'peaceful']), undefined, 'Whether, and how, the machine is out of every pool.'),
  keep: entry(integer(0), undefined, 'Cores that no pool may use.'),
} as const;

/** What that file sets; what it does not name stays with the user. */
export interface RootPolicy {
  readonly policy: string | undefined;
  readonly expressions: Partial<PolicyTexts>;
  readonly attributes: Readonly<Record<string, string>>;
  readonly polling: number | undefined;
  readonly idleSources: readonly string[] | undefined;
  readonly ignoreTerminals: readonly string[];
  readonly off: Off | undefined;
  readonly keep: number | undefined;
}

/**
 * `undefined` if there is no such file. Throws a GryphusError 'bad-config' if it does not belong to root alone or is
 * invalid: such a file must not count as permission for everything.
 */
export async function readRootPolicy(file: string): Promise<RootPolicy | undefined> {
  const found = lstatSync(file, { throwIfNoEntry: false });
  if (!found) return undefined;
  const bad = (message: string) => new GryphusError('bad-config', `${file}: ${message}`);
  if (!found.isFile() || found.uid !== 0) throw bad('it does not belong to root.');
  if ((found.mode & 0o022) !== 0) throw bad('users other than root can write to it.');
  const source = { file, text: readFileSync(file, 'utf8') };
  const tree = await parseToml(source);
  const values = readTable(KEYS, tree, source);
  const given = new Set([...leavesOf(tree, KEYS)].map(([key]) => key));
  const said = <T>(key: keyof PolicyKeyValues, value: T): T | undefined => (given.has(key) ? value : undefined);
  return {
    policy: said('policy', values.policy),
    expressions: ownExpressions(values),
    attributes: values.attributes ?? {},
    polling: said('polling_interval', values.polling_interval),
    idleSources: said('idle_sources', values.idle_sources),
    ignoreTerminals: values.ignore_terminals,
    off: values.off,
    keep: values.keep,
  };
}
