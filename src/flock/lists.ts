import type { AttrTexts } from '../job/attrs.ts';
import { inAd, readBoolean, readNumber, readString } from '../job/values.ts';
import { NOTHING } from '../pool/wire/slots.ts';
import type { Size } from '../pool/wire/wire.ts';
import type { StrangerWay } from '../config/agreements.ts';
import type { LentKind } from './flock-wire.ts';

/** What a partner learns of a kind of machines: its platform, no name, no load, no user. */
const SHOWN = [
  'Arch',
  'OpSys',
  'OpSysAndVer',
  'OpSysMajorVer',
  'OpSysName',
  'OpSysShortName',
  'OpSysVer',
  'OpSysLongName',
  'CondorVersion',
  'HasFileTransfer',
  'HasFileTransferPluginMethods',
  'HasPerFileEncryption',
  'HasSelfCheckpointTransfers',
  'HasReconnect',
] as const;

/** How a worker says under which accounts it can run a stranger's job, or why it cannot. */
export const LENDS_AS = 'GryphusLendsAs';
export const LENDS_NOT = 'GryphusLendsNot';
export const LENDS_OFFLINE = 'GryphusLendsOffline';
/** Marks a slot that stands for machines of a partner, */
export const FLOCK_POOL = 'FlockPool';
/** says through how many further pools they are reached, */
export const FLOCK_HOPS = 'FlockHops';
/** and by which agents, the partner's first. */
export const FLOCK_WAY = 'FlockWay';
/** In the ad of a partner's job: by which agents it is to be passed on. */
export const FLOCK_TO = 'FlockTo';

/** An idle part of one of our workers that may be lent. */
export interface IdlePart {
  readonly ad: AttrTexts;
  readonly free: Size;
}

export interface IdleMachines {
  readonly parts: readonly IdlePart[];
  /** Why workers that are here do not lend, one sentence for each reason. */
  readonly refusals: readonly string[];
}

/** What is idle, by the ads of our pool's slots. */
export function idleMachines(
  slots: readonly AttrTexts[],
  { run_as: runAs, network }: { readonly run_as: StrangerWay; readonly network: boolean },
): IdleMachines {
  const parts: IdlePart[] = [];
  const refusals = new Set<string>();
  for (const ad of slots) {
    const source = inAd(ad);
    if (readString(source, 'SlotType') !== 'Partitionable' || source.get(FLOCK_POOL) !== undefined) continue;
    if (!['Unclaimed', 'Claimed'].includes(readString(source, 'State') ?? '')) continue;
    const ways = (readString(source, LENDS_AS) ?? '').split(',').filter((way) => way !== '');
    const name = readString(source, 'Name') ?? 'a worker';
    if (ways.length === 0) refusals.add(`${name}: ${readString(source, LENDS_NOT) ?? 'its version cannot lend'}`);
    else if (runAs !== 'auto' && !ways.includes(runAs)) refusals.add(`${name}: it cannot run jobs as '${runAs}'`);
    else if (!network && readBoolean(source, LENDS_OFFLINE) !== true)
      refusals.add(`${name}: it cannot take the network from a job (network = true would allow it)`);
    else {
      const much = (attribute: string) => readNumber(source, attribute) ?? 0;
      const free = { cpus: much('Cpus'), memoryMb: much('Memory'), diskKb: much('Disk'), gpus: much('GPUs') };
      if (free.cpus >= 1) parts.push({ ad, free });
    }
  }
  return { parts, refusals: [...refusals] };
}

/** The availability list: what of the idle parts is lent, as kinds and counts, at most so many cores. */
export function availability(parts: readonly IdlePart[], cores: number): LentKind[] {
  const kinds = new Map<string, LentKind>();
  let left = cores;
  for (const { ad, free } of [...parts].sort((a, b) => b.free.cpus - a.free.cpus)) {
    const cpus = Math.min(Math.floor(free.cpus), left);
    if (cpus < 1) break;
    left -= cpus;
    const shown = Object.fromEntries(SHOWN.flatMap((name) => (typeof ad[name] === 'string' ? [[name, ad[name]]] : [])));
    const mark = JSON.stringify(shown);
    const part = { ...free, cpus, diskKb: twoDigits(free.diskKb) };
    const known = kinds.get(mark);
    kinds.set(mark, {
      ad: shown,
      machines: (known?.machines ?? 0) + 1,
      each: known ? combined(known.each, part, Math.max) : part,
      all: known ? combined(known.all, part, (a, b) => a + b) : part,
    });
  }
  return [...kinds.values()];
}

/** Rounded down to its first two digits: what is free on a disk changes all the time, and each change would be told. */
function twoDigits(much: number): number {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, much))) - 1);
  return Math.floor(much / unit) * unit;
}

/** A constant of the ClassAd language, and no long one. */
const CONSTANT = /^(-?\d{1,18}(\.\d{1,18})?|true|false|"[^"\\\n]{0,200}")$/i;
/** More cores, or memory in MB, than any pool has. */
const MOST = 1e9;

/** A kind of a partner's machines without anything that a list does not have: it says nothing of our pool, and computes nothing. */
export function plainKind({ ad, machines, each, all, path = [] }: LentKind): LentKind {
  const texts = SHOWN.flatMap((name) => {
    const text = Object.hasOwn(ad, name) ? ad[name] : undefined;
    return typeof text === 'string' && CONSTANT.test(text) ? [[name, text] as const] : [];
  });
  const plain = (size: Size) => combined(size, NOTHING, (much) => Math.max(0, Math.min(MOST, much)));
  return {
    ad: Object.fromEntries(texts),
    machines: Math.min(MOST, machines),
    each: plain(each),
    all: plain(all),
    ...(path.length > 0 ? { path } : {}),
  };
}

export function combined(a: Size, b: Size, how: (a: number, b: number) => number): Size {
  return {
    cpus: how(a.cpus, b.cpus),
    memoryMb: how(a.memoryMb, b.memoryMb),
    diskKb: how(a.diskKb, b.diskKb),
    gpus: how(a.gpus, b.gpus),
  };
}

export function sumOf(sizes: Iterable<Size>): Size {
  return [...sizes].reduce((sum, size) => combined(sum, size, (a, b) => a + b), NOTHING);
}

/** Unix milliseconds or any clock: a partner whose list is older than this is taken for down. */
export const LIST_MS = 180_000;
/** A list is sent again after this time even if nothing has changed. */
export const LIST_AGAIN_MS = 60_000;
