import type { Limits } from './engine/messages.ts';
import type { DagRun } from './manager/prepare.ts';

/** What a DAG manager is told on its command line; its cluster is known when it runs. */
export type DagOrder = Omit<DagRun, 'dagmanId' | 'version' | 'settings'>;

const LIMITS = {
  '-MaxJobs': 'maxJobs',
  '-MaxIdle': 'maxIdle',
  '-MaxPre': 'maxPre',
  '-MaxPost': 'maxPost',
  '-MaxHold': 'maxHold',
} as const satisfies Record<string, keyof Limits>;

/** The order as words in condor_dagman's manner. */
export function orderWords(order: DagOrder): readonly string[] {
  const words: string[] = order.files.flatMap((file) => ['-Dag', file]);
  for (const [word, name] of Object.entries(LIMITS)) {
    const limit = order.limits?.[name];
    if (limit !== undefined) words.push(word, String(limit));
  }
  if (order.useDagDir === true) words.push('-UseDagDir');
  if (order.priority !== undefined) words.push('-Priority', String(order.priority));
  if (order.batchName !== undefined) words.push('-BatchName', order.batchName);
  if (order.saveFile !== undefined) words.push('-Load_Save', order.saveFile);
  if (order.configFile !== undefined) words.push('-Config', order.configFile);
  if (order.rescueFrom !== undefined) words.push('-DoRescueFrom', String(order.rescueFrom));
  if (order.parentDagmanId !== undefined) words.push('-Parent', String(order.parentDagmanId));
  if (order.autoRescue !== undefined) words.push('-AutoRescue', order.autoRescue ? '1' : '0');
  return words;
}

/** What `orderWords` wrote; `undefined` where it is something else. */
export function readOrder(words: readonly string[]): DagOrder | undefined {
  const files: string[] = [];
  const limits: Partial<Record<keyof Limits, number>> = {};
  let order: Omit<DagOrder, 'files' | 'limits'> = {};
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? '';
    if (word === '-UseDagDir') {
      order = { ...order, useDagDir: true };
      continue;
    }
    const value = words[++i];
    if (value === undefined) return undefined;
    const limit = LIMITS[word as keyof typeof LIMITS];
    if (limit !== undefined) limits[limit] = Number(value);
    else if (word === '-Dag') files.push(value);
    else if (word === '-Priority') order = { ...order, priority: Number(value) };
    else if (word === '-BatchName') order = { ...order, batchName: value };
    else if (word === '-Load_Save') order = { ...order, saveFile: value };
    else if (word === '-Config') order = { ...order, configFile: value };
    else if (word === '-DoRescueFrom') order = { ...order, rescueFrom: Number(value) };
    else if (word === '-Parent') order = { ...order, parentDagmanId: Number(value) };
    else if (word === '-AutoRescue') order = { ...order, autoRescue: value !== '0' };
    else return undefined;
  }
  return files.length === 0 ? undefined : { ...order, files, limits };
}
