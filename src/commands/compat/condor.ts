import { hostname } from 'node:os';
import type { Gryphus } from '../../index.ts';
import { inAd, readNumber } from '../../job/values.ts';
import { Refused } from './options.ts';

/** The version of HTCondor whose commands these are like; tools compare its numbers. */
const VERSION = '23.9.6';
export const CONDOR_VERSION = `$CondorVersion: ${VERSION} 2024-08-08 BuildID: gryphus $
$CondorPlatform: ${process.arch === 'arm64' ? 'aarch64' : 'X86_64'}-Linux $
`;

export function condorVersion(words: readonly string[], write: (text: string) => void): number {
  const [word] = words;
  if (word === undefined) write(CONDOR_VERSION);
  else if (word === '-arch') write(`${process.arch === 'arm64' ? 'aarch64' : 'X86_64'}\n`);
  else if (word === '-opsys') write('LINUX\n');
  else throw new Refused(`unrecognized argument: '${word}'`);
  return 0;
}

/** `condor_prio -p 5 12 13.2`, `+5`, `-5`, `-a`; the exit status. */
export async function condorPrio(
  gryphus: Gryphus,
  words: readonly string[],
  write: (text: string) => void,
): Promise<number> {
  let change: { readonly to: number } | { readonly by: number } | undefined;
  let all = false;
  const names: string[] = [];
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? '';
    if (word === '-p') change = { to: whole(words[++i]) };
    else if (/^[+-]\d+$/.test(word)) change = { by: whole(word) };
    else if (word === '-a') all = true;
    else if (word.startsWith('-')) throw new Refused(`unknown option ${word}`);
    else names.push(word);
  }
  if (change === undefined) throw new Refused('no priority given: -p N, +N or -N');
  if (!all && names.length === 0) throw new Refused('no jobs given');
  const wanted = all ? [undefined] : names;
  let status = 0;
  for (const name of wanted) {
    const byPriority = await prioritiesOf(gryphus, name);
    if (byPriority.size === 0) {
      write(`No jobs found matching ${name ?? 'anything'}\n`);
      status = 1;
    }
    for (const [priority, ids] of byPriority) {
      const to = 'to' in change ? change.to : priority + change.by;
      await gryphus.edit({ ids }, { JobPrio: String(to) });
    }
  }
  return status;
}

function whole(text: string | undefined): number {
  if (text === undefined || !/^[+-]?\d{1,9}$/.test(text)) throw new Refused(`'${text ?? ''}' is not a priority`);
  return Number(text);
}

type Ids = { readonly cluster: number; readonly proc: number }[];

/** The named jobs, a cluster, a job or an owner's, by the priority that they have. */
async function prioritiesOf(gryphus: Gryphus, name: string | undefined): Promise<Map<number, Ids>> {
  const [, cluster, proc] = /^(\d{1,15})(?:\.(\d{1,15}))?$/.exec(name ?? '') ?? [];
  const selection =
    name === undefined
      ? {}
      : cluster === undefined
        ? { owner: name }
        : proc === undefined
          ? { clusters: [Number(cluster)] }
          : { ids: [{ cluster: Number(cluster), proc: Number(proc) }] };
  const found = new Map<number, Ids>();
  for await (const { id, ad } of gryphus.query({ ...selection, attributes: ['JobPrio'] })) {
    const priority = readNumber(inAd(ad), 'JobPrio') ?? 0;
    const ids = found.get(priority);
    if (ids) ids.push(id);
    else found.set(priority, [id]);
  }
  return found;
}

/** `condor_config_val NAME…`: what tools ask for; the exit status. */
export function condorConfigVal(
  words: readonly string[],
  write: (text: string) => void,
  warn: (text: string) => void,
): number {
  const names = words.filter((word) => !word.startsWith('-'));
  const unknown = words.find((word) => word.startsWith('-') && !DAEMONS.has(word));
  if (unknown !== undefined) throw new Refused(`option ${unknown} is not supported`);
  if (names.length === 0) throw new Refused('no variable given');
  const host = hostname();
  const known: Readonly<Record<string, string>> = {
    CONDOR_HOST: host,
    COLLECTOR_HOST: host,
    SCHEDD_HOST: host,
    SCHEDD_NAME: host,
    FULL_HOSTNAME: host,
    HOSTNAME: host.split('.')[0] ?? '',
    UID_DOMAIN: host,
    FILESYSTEM_DOMAIN: host,
    CONDOR_VERSION: VERSION,
    DAEMON_LIST: 'MASTER, COLLECTOR, NEGOTIATOR, SCHEDD, STARTD',
  };
  let status = 0;
  for (const name of names) {
    const value = known[name.toUpperCase()];
    if (value === undefined) {
      warn(`Not defined: ${name}\n`);
      status = 1;
    } else write(`${value}\n`);
  }
  return status;
}

/** Whose configuration is asked for; there is one. */
const DAEMONS = new Set(['-schedd', '-startd', '-master', '-collector', '-negotiator']);
