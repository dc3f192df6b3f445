import { parseArgsV2Quoted } from '../submit/api.ts';
import type { Limits } from './engine/messages.ts';
import type { DagRun } from './manager/prepare.ts';

/** The DAG manager's command line; its cluster is not known until it runs. */
export type DagOrder = Omit<DagRun, 'dagmanId' | 'version' | 'settings' | 'ownAttribute' | 'batchId'>;

const LIMITS = {
  '-MaxJobs': 'maxJobs',
  '-MaxIdle': 'maxIdle',
  '-MaxPre': 'maxPre',
  '-MaxPost': 'maxPost',
  '-MaxHold': 'maxHold',
} as const satisfies Record<string, keyof Limits>;

/** Options without a value. */
const SWITCHES = {
  '-UseDagDir': ['useDagDir', true],
  '-AlwaysRunPost': ['alwaysRunPost', true],
  '-DontAlwaysRunPost': ['alwaysRunPost', false],
  '-Suppress_Notification': ['suppressNotification', true],
  '-Dont_Suppress_Notification': ['suppressNotification', false],
  '-Force': ['force', true],
  '-Import_Env': ['importEnv', true],
} as const satisfies Record<string, readonly [keyof DagOrder, boolean]>;

/** Options followed by a value. */
const TEXTS = {
  '-BatchName': 'batchName',
  '-Load_Save': 'saveFile',
  '-RescueFile': 'rescueFile',
  '-Config': 'configFile',
  '-Outfile_Dir': 'outfileDir',
  '-Notification': 'notification',
} as const satisfies Record<string, keyof DagOrder>;

const NUMBERS = {
  '-Priority': 'priority',
  '-DoRescueFrom': 'rescueFrom',
  '-Parent': 'parentDagmanId',
} as const satisfies Record<string, keyof DagOrder>;

/** The order as arguments in condor_dagman's style. */
export function orderArguments(order: DagOrder): readonly string[] {
  const words: string[] = order.files.flatMap((file) => ['-Dag', file]);
  for (const [word, name] of Object.entries(LIMITS)) {
    const limit = order.limits?.[name];
    if (limit !== undefined) words.push(word, String(limit));
  }
  for (const [word, [name, value]] of Object.entries(SWITCHES)) if (order[name] === value) words.push(word);
  for (const [word, name] of [...Object.entries(TEXTS), ...Object.entries(NUMBERS)]) {
    const value = order[name];
    if (value !== undefined) words.push(word, String(value));
  }
  for (const name of order.includeEnv ?? []) words.push('-Include_Env', name);
  if (order.autoRescue !== undefined) words.push('-AutoRescue', order.autoRescue ? '1' : '0');
  return words;
}

/** The limits in the description of an earlier submit, which an update of that submit keeps. */
export function limitsOfDescription(text: string): Partial<Limits> {
  const quoted = /^[ \t]*arguments[ \t]*=[ \t]*(".*")[ \t]*$/im.exec(text)?.[1] ?? '""';
  const words = parseArgsV2Quoted(quoted);
  const limits: Partial<Record<keyof Limits, number>> = {};
  if (!words.ok) return limits;
  const known = new Map(Object.entries(LIMITS).map(([word, name]) => [word.toLowerCase(), name]));
  for (const [i, word] of words.value.entries()) {
    const name = known.get(word.toLowerCase());
    const value = words.value[i + 1];
    if (name !== undefined && value !== undefined && /^\d+$/.test(value)) limits[name] = Number(value);
  }
  return limits;
}

/** Reads what `orderArguments` wrote; `undefined` for anything else. */
export function readOrder(words: readonly string[]): DagOrder | undefined {
  const files: string[] = [];
  const limits: Partial<Record<keyof Limits, number>> = {};
  const names: string[] = [];
  let order: Omit<DagOrder, 'files' | 'limits' | 'includeEnv'> = {};
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? '';
    const sign = SWITCHES[word as keyof typeof SWITCHES];
    if (sign !== undefined) {
      order = { ...order, [sign[0]]: sign[1] };
      continue;
    }
    const value = words[++i];
    if (value === undefined) return undefined;
    const limit = LIMITS[word as keyof typeof LIMITS];
    if (limit !== undefined) limits[limit] = Number(value);
    else if (word === '-Dag') files.push(value);
    else if (word === '-Include_Env') names.push(value);
    else if (Object.hasOwn(TEXTS, word)) order = { ...order, [TEXTS[word as keyof typeof TEXTS]]: value };
    else if (Object.hasOwn(NUMBERS, word)) order = { ...order, [NUMBERS[word as keyof typeof NUMBERS]]: Number(value) };
    else if (word === '-AutoRescue') order = { ...order, autoRescue: value !== '0' };
    else return undefined;
  }
  if (files.length === 0) return undefined;
  return { ...order, files, limits, ...(names.length === 0 ? {} : { includeEnv: names }) };
}
