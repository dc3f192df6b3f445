import { basename } from 'node:path';
import type { CorpusCase, Outcome } from './corpus.ts';

/** Where a case was played. */
interface Ground {
  read(name: string): string | undefined;
  files(): readonly string[];
}

/** How a case's outcome differs from the real one, one line for each difference. */
export function differences(one: CorpusCase, outcome: Outcome, stage: Ground): readonly string[] {
  const found: string[] = [];
  const same = (what: string, real: unknown, ours: unknown): void => {
    const [a, b] = [JSON.stringify(real), JSON.stringify(ours)];
    if (a !== b) found.push(`${what}: ${a} is here ${b}`);
  };
  if (one.submit_exit !== 0) {
    if (outcome.refused === undefined) found.push(`submit was not refused: ${one.submit_stderr ?? ''}`);
    return found;
  }
  same('exit', realExit(one.dagman_exit), outcome.exitCode);
  if (outcome.world === undefined) return found;
  compareNodes(one, outcome, same);
  compareFiles(one, stage, same);
  return found;
}

type Same = (what: string, real: unknown, ours: unknown) => void;

/**
 * DAGMan's exit code; if it crashed, hung or was put back into the queue, the exit code that is expected here instead.
 */
function realExit(exit: CorpusCase['dagman_exit']): number | undefined {
  if (exit === null) return undefined;
  if (typeof exit === 'number') return exit;
  const requeued = /^exited (\d+) and requeued/.exec(exit);
  if (requeued !== null) return Number(requeued[1]);
  // A crash there is one clear error here. A removed DAG, even one that would wait for ever, exits with 2.
  return exit.startsWith('signal') ? 1 : 2;
}

function compareNodes(one: CorpusCase, outcome: Outcome, same: Same): void {
  const submits = outcome.world?.submits ?? [];
  const isReal = (name: string): boolean => !name.includes('_condor_join_node');
  const ours: Record<string, number> = {};
  for (const submit of submits) ours[submit.node] = (ours[submit.node] ?? 0) + submit.procs;
  const real = Object.entries(one.nodes)
    .filter(([name, node]) => node.attempts > 0 && isReal(name))
    .map(([name, node]) => [fromOctal(name), node.attempts] as const);
  same('attempts', real.sort(byName), Object.entries(ours).sort(byName));
  if (one.flags?.includes('racy') === true) return;
  const order = (one.submit_order ?? []).map(fromOctal).filter(isReal);
  const names = (of: typeof submits): string[] => of.flatMap((s) => Array.from({ length: s.procs }, () => s.node));
  const certain = names(submits.slice(0, outcome.world?.certain ?? submits.length)).length;
  const settled = (list: readonly string[]) => [...list.slice(0, certain), ...list.slice(certain).sort()];
  same('submit order', settled(order), settled(names(submits)));
}

function byName(a: readonly [string, number], b: readonly [string, number]): number {
  return a[0] < b[0] ? -1 : 1;
}

/** Node names in the corpus have non-ASCII characters in octal. */
function fromOctal(name: string): string {
  const bytes = name.replaceAll(/\\([0-7]{3})/g, (_all, octal: string) =>
    String.fromCharCode(Number.parseInt(octal, 8)),
  );
  return Buffer.from(bytes, 'latin1').toString();
}

function compareFiles(one: CorpusCase, stage: Ground, same: Same): void {
  const primary = one.argv.find((word) => word.endsWith('dag') && !word.startsWith('-')) ?? 'x.dag';
  const hangs = typeof one.dagman_exit === 'string' && one.dagman_exit.startsWith('still');
  const statusFile = Object.keys(one.outputs).find((name) => name.endsWith('.ns')) ?? 'ns.txt';
  if (one.node_status !== undefined && !hangs) {
    same('node status file', maskStatus(one.node_status), maskStatus(stage.read(statusFile) ?? ''));
  }
  const rescues = stage.files().filter((name) => name.startsWith(primary) && name.includes('.rescue'));
  same('rescue files', one.rescue_files ?? [], rescues);
  const last = (one.rescue_files ?? []).at(-1);
  if (one.rescue !== undefined && last !== undefined) {
    same('rescue file', maskDate(one.rescue), maskDate(stage.read(last) ?? ''));
  }
  if (one.metrics !== undefined) {
    const ours = JSON.parse(stage.read(`${primary}.metrics`) ?? '{}') as Record<string, unknown>;
    for (const [name, value] of Object.entries(one.metrics)) same(`metrics ${name}`, value, ours[name]);
  }
  if (one.jobstate_log !== undefined) {
    same('jobstate log', byNode(one.jobstate_log), byNode(maskJobstate(stage.read('js.log') ?? '')));
  }
  for (const [name, text] of Object.entries(one.outputs)) compareOutput(name, text, stage, same);
}

/** Files that jobs, scripts and DAGMan wrote: their lines in any order; for waiting jobs, only that they started. */
function compareOutput(name: string, text: string, stage: Ground, same: Same): void {
  // These show attributes of HTCondor's own job, and its user log, which the queue writes.
  if (/^ad\.|my\.log$|\.out$|\.ns$/.test(basename(name))) return;
  const lines = (file: string): readonly string[] =>
    maskDate(file)
      .replaceAll(/status at .*"/g, 'status at TIME"')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('end '))
      .sort();
  same(name, lines(text), lines(stage.read(name) ?? ''));
}

function maskDate(text: string): string {
  return text.replaceAll(/# Created .*/g, '# Created DATE');
}

function maskStatus(text: string): string {
  return text
    .replaceAll(/(Timestamp|EndTime|NextUpdate) = .*;.*/g, '$1 = TIME;')
    .replaceAll(/proc \((?:ID|\d+)\.(\d+)(?:\.0)?\)/g, 'proc (ID.$1)');
}

function maskJobstate(text: string): string {
  const ids = new Map<string, string>();
  return text.replaceAll(/^\d+/gm, 'TIME').replaceAll(/\b(\d+)\.0\b/g, (_all, cluster: string) => {
    if (!ids.has(cluster)) ids.set(cluster, `ID${ids.size + 1}`);
    return ids.get(cluster) ?? '';
  });
}

/** Lines of different nodes may come in any order, those of one node may not. */
function byNode(log: string): Record<string, readonly string[]> {
  const nodes: Record<string, string[]> = {};
  for (const line of log.split('\n')) {
    const node = line.split(' ')[1] ?? '';
    const list = nodes[node] ?? [];
    list.push(line);
    nodes[node] = list;
  }
  return Object.fromEntries(Object.entries(nodes).sort(([a], [b]) => (a < b ? -1 : 1)));
}
