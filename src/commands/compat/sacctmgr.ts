import type { Gryphus } from '../../index.ts';
import { inAd, readString } from '../../job/values.ts';
import { getopt, Refused } from './options.ts';
import { ownUser } from '../../util/own-user.ts';

/** Its options, for `getopt`. */
export const SPEC =
  '-n|--noheader -s|--associations -P|--parsable2 -p|--parsable -i|--immediate -Q|--quiet -v|--verbose -r|--readonly';

/** The user with one of the accounts: an association. */
interface Association {
  readonly user: string;
  readonly account: string;
}

/** Names that sacctmgr has for a column, its heading and width, and the value. */
const FIELDS: readonly (readonly [name: string, head: string, width: number, value: (one: Association) => string])[] = [
  ['user', 'User', 10, ({ user }) => user],
  ['account', 'Account', 10, ({ account }) => account],
  ['defaultaccount', 'Def Acct', 10, ({ account }) => account],
  ['cluster', 'Cluster', 10, () => 'gryphus'],
  ['adminlevel', 'Admin', 9, () => 'None'],
  ['partition', 'Partition', 10, () => ''],
  ['qos', 'QOS', 20, () => ''],
  ['defaultqos', 'Def QOS', 9, () => ''],
  ['share', 'Share', 9, () => '1'],
  ['description', 'Descr', 20, ({ account }) => account],
  ['organization', 'Org', 20, ({ account }) => account],
];

const USUAL: Readonly<Record<string, string>> = {
  user: 'user,defaultaccount,adminlevel',
  'user with associations': 'user,defaultaccount,adminlevel,cluster,account,partition,share,qos,defaultqos',
  association: 'cluster,account,user,partition,share,qos,defaultqos',
  account: 'account,description,organization',
  cluster: 'cluster',
};

/** How many jobs, from the newest, are searched for the accounts that they name. */
const SEARCHED = 20_000;

/**
 * `sacctmgr list|show user|association|account|cluster`: the agent has no list of accounts, so these are the ones that
 * jobs of the queue and the history named. The exit status.
 */
export async function sacctmgr(
  gryphus: Gryphus,
  words: readonly string[],
  write: (text: string) => void,
): Promise<number> {
  const { values, words: rest } = getopt(SPEC, words);
  const [verb = '', entity = '', ...more] = rest;
  if (!/^(list|show)$/i.test(verb)) throw new Refused(`only list and show are supported, not '${verb}'`);
  const kind = entityOf(entity);
  const { users, format } = conditions(more, kind);
  const associated = values.has('associations') || kind !== 'user';
  const columns = (format ?? USUAL[kind === 'user' && associated ? 'user with associations' : kind] ?? '')
    .split(',')
    .map(columnOf);
  const user = ownUser().username;
  const accounts = kind === 'cluster' ? [''] : await accountsOf(gryphus);
  const wanted = users.length === 0 || kind !== 'user' || users.includes(user);
  const rows = !wanted ? [] : (associated ? accounts : accounts.slice(0, 1)).map((account) => ({ user, account }));
  const parsed = values.has('parsable2') || values.has('parsable');
  const end = values.has('parsable') ? '|' : '';
  const line = (texts: readonly string[]) =>
    parsed ? `${texts.join('|')}${end}` : columns.map(({ width }, i) => `${fit(texts[i] ?? '', width)} `).join('');
  const lines = rows.map((one) => line(columns.map(({ value }) => value(one))));
  if (!values.has('noheader')) {
    const rule = parsed ? [] : [columns.map(({ width }) => `${'-'.repeat(width)} `).join('')];
    lines.unshift(line(columns.map(({ head }) => head)), ...rule);
  }
  if (lines.length > 0) write(`${lines.join('\n')}\n`);
  return 0;
}

function entityOf(text: string): 'user' | 'association' | 'account' | 'cluster' {
  for (const kind of ['user', 'association', 'account', 'cluster'] as const)
    if (text.length > 2 && (kind.startsWith(text.toLowerCase()) || text.toLowerCase() === `${kind}s`)) return kind;
  throw new Refused(`'${text}' is not supported; user, association, account and cluster are`);
}

function conditions(words: readonly string[], kind: string): { readonly users: string[]; readonly format?: string } {
  const users: string[] = [];
  let format: string | undefined;
  for (const word of words) {
    const [, name, value = ''] = /^(\w+)=(.*)$/.exec(word) ?? [];
    if (name === undefined && kind === 'user') users.push(...word.split(','));
    else if (/^(user|name)s?$/i.test(name ?? '') && kind !== 'account') users.push(...value.split(','));
    else if (/^format$/i.test(name ?? '')) format = value;
    else if (name !== undefined || !/^(where|withassoc)$/i.test(word)) throw new Refused(`Unknown condition: ${word}`);
  }
  return { users, ...(format === undefined ? {} : { format }) };
}

interface Column {
  readonly head: string;
  readonly width: number;
  readonly value: (one: Association) => string;
}

/** `account%20`, and names cut short as sacctmgr takes them. */
function columnOf(text: string): Column {
  const [name = '', width] = text.toLowerCase().split('%');
  const found = FIELDS.find(([one]) => name.length > 0 && one.startsWith(name));
  if (found === undefined) throw new Refused(`Unknown field '${text}'`);
  const [, head, usual, value] = found;
  return { head, value, width: width === undefined ? usual : Math.abs(Number(width)) };
}

/** A text that is too long ends in `+`. */
function fit(text: string, width: number): string {
  return text.length > width ? `${text.slice(0, width - 1)}+` : text.padStart(width);
}

async function accountsOf(gryphus: Gryphus): Promise<string[]> {
  const found = new Set<string>();
  let seen = 0;
  for await (const { ad } of gryphus.jobs({ attributes: ['BatchProject', 'GryphusAccount'] })) {
    const account = readString(inAd(ad), 'BatchProject') ?? readString(inAd(ad), 'GryphusAccount');
    if (account !== undefined && account !== '') found.add(account);
    if (++seen >= SEARCHED) break;
  }
  const own = process.env['SBATCH_ACCOUNT'];
  return [...new Set([...(own === undefined || own === '' ? [] : [own]), ...found])];
}
