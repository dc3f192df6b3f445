import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import type { Gryphus } from '../../index.ts';
import { inAd, readNumber } from '../../job/values.ts';
import { Refused } from './options.ts';

/** The version of HTCondor whose commands these are like; tools compare its numbers. */
const VERSION = '23.9.6';
const ARCH = process.arch === 'arm64' ? 'aarch64' : 'X86_64';
export const CONDOR_VERSION = `$CondorVersion: ${VERSION} 2024-08-08 PackageID: gryphus $
$CondorPlatform: ${ARCH}-${operatingSystem()} $
`;

/** As HTCondor's packages name it, such as `Debian_12`; `LINUX` where os-release(5) does not tell. */
function operatingSystem(): string {
  let text = '';
  try {
    text = readFileSync('/etc/os-release', 'utf8');
  } catch {
    // A very small system.
  }
  const [, name] = /^NAME="?(\w+)/m.exec(text) ?? [];
  const [, major] = /^VERSION_ID="?(\d+)/m.exec(text) ?? [];
  return name === undefined || major === undefined ? 'LINUX' : `${name}_${major}`;
}

export function condorVersion(words: readonly string[], write: (text: string) => void): number {
  const [word] = words;
  if (word === undefined) write(CONDOR_VERSION);
  else if (word === '-arch') write(`${ARCH}\n`);
  else if (word === '-opsys') write(`${operatingSystem()}\n`);
  else throw new Refused(`unrecognized argument: '${word}'`);
  return 0;
}

/**
 * `condor_prio -p 5 12 13.2`, `+5`, `-5`, `-a`; the exit status. Of jobs that are not there only one that is named with its
 * proc is told of, and it is no failure.
 */
export async function condorPrio(
  gryphus: Gryphus,
  words: readonly string[],
  warn: (text: string) => void,
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
  if (change === undefined) throw new Refused('You must specify a new priority or priority adjustment.');
  const wanted = all ? [undefined] : names;
  for (const name of wanted) {
    const byPriority = await prioritiesOf(gryphus, name);
    if (byPriority.size === 0 && /^\d+\.\d+$/.test(name ?? ''))
      warn(`Couldn't retrieve current priority for ${name}.\n`);
    for (const [priority, ids] of byPriority) {
      const to = 'to' in change ? change.to : priority + change.by;
      await gryphus.edit({ ids }, { JobPrio: String(to) });
    }
  }
  return 0;
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
  if (unknown !== undefined) throw new Refused(`${unknown} is not a valid argument`);
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
    if (value !== undefined) write(`${value}\n`);
    // A daemon that is asked answers, and that is no failure.
    else if (names.length < words.length) write('Not defined\n');
    else {
      warn(`Not defined: ${name}\n`);
      status = 1;
    }
  }
  return status;
}

/** Whose configuration is asked for; there is one. */
const DAEMONS = new Set(['-schedd', '-startd', '-master', '-collector', '-negotiator']);
