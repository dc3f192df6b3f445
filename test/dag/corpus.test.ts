import { afterEach, describe, expect, it } from 'vitest';
import { join } from 'node:path';
import { type CorpusCase, loadCorpus, type Outcome, Stage } from './support/corpus.ts';

const CASES = loadCorpus(join(import.meta.dirname, '../fixtures/dag.jsonl'));

let stage: Stage | undefined;
afterEach(() => {
  stage?.close();
  stage = undefined;
});

/** Plays all steps of a case; the outcome of the last submit. */
async function play(one: CorpusCase): Promise<{ readonly outcome: Outcome; readonly stage: Stage }> {
  const here = new Stage(one.files);
  stage = here;
  if (one.steps === undefined) return { outcome: await here.submit(one.argv), stage: here };
  let outcome: Outcome | undefined;
  for (const [i, step] of one.steps.entries()) {
    if (step.write !== undefined) for (const [name, text] of Object.entries(step.write)) here.write(name, text);
    if (step.rm !== undefined) here.removeMatching(step.rm);
    if (step.submit === undefined) continue;
    const removed = one.steps.slice(i + 1).some((s) => s.condor?.[0] === 'condor_rm');
    outcome = await here.submit(step.submit, (world) => {
      if (step.nowait === true && removed) world.at(10, { is: 'remove' });
    });
  }
  if (outcome === undefined) throw new Error(`${one.name} submits nothing`);
  return { outcome, stage: here };
}

/** Names of nodes as the corpus prints them: bytes that are not ASCII in octal. */
function plain(name: string): string {
  const bytes = name.replaceAll(/\\([0-7]{3})/g, (_all, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
  return Buffer.from(bytes, 'latin1').toString();
}

function attempts(outcome: Outcome): Record<string, number> {
  const count: Record<string, number> = {};
  for (const submit of outcome.world?.submits ?? []) count[submit.node] = (count[submit.node] ?? 0) + submit.procs;
  return count;
}

describe.each(CASES)('$name', (one) => {
  it('plays', async () => {
    const { outcome, stage: here } = await play(one);
    const diff: string[] = [];
    const realExit = typeof one.dagman_exit === 'number' ? one.dagman_exit : one.dagman_exit;
    if (one.submit_exit !== 0) { if (outcome.refused === undefined) diff.push(`not refused: ${one.submit_stderr}`); }
    else if (realExit !== outcome.exitCode) diff.push(`exit ${String(realExit)} / ${outcome.exitCode} ${outcome.refused ?? ''}`);
    const want = Object.fromEntries(Object.entries(one.nodes).filter(([n, v]) => v.attempts > 0 && !n.startsWith('_condor_join')).map(([n, v]) => [plain(n), v.attempts]));
    if (outcome.world) { const got = attempts(outcome); if (JSON.stringify(Object.entries(want).sort()) !== JSON.stringify(Object.entries(got).sort())) diff.push(`attempts ${JSON.stringify(want)} / ${JSON.stringify(got)}`); }
    const order = (one.submit_order ?? []).map(plain).filter((n) => !n.startsWith('_condor_join'));
    const gotOrder = (outcome.world?.submits ?? []).flatMap((s) => Array.from({ length: s.procs }, () => s.node));
    if (outcome.world && order.join() !== gotOrder.join() ) diff.push(`order ${order.join()} / ${gotOrder.join()}`);
    const ns = Object.keys(one.outputs).find((k) => k.endsWith('.ns')) ?? 'ns.txt';
    const norm = (s: string | undefined): string => (s ?? '').replaceAll(/(Timestamp|EndTime|NextUpdate) = .*;.*/g, '$1 = TIME;').replaceAll(/proc \(\d+\.(\d+)(\.0)?\)/g, 'proc (ID.$1)').replaceAll(/proc \(ID\.(\d+)\.0\)/g, 'proc (ID.$1)');
    if (one.node_status && norm(here.read(ns)) !== norm(one.node_status)) diff.push(`status\n--- real\n${norm(one.node_status)}\n--- ours\n${norm(here.read(ns))}`);
    const rescues = here.files().filter((f) => f.includes('.rescue')).join();
    if (rescues !== (one.rescue_files ?? []).join()) diff.push(`rescues ${(one.rescue_files ?? []).join()} / ${rescues}`);
    const last = (one.rescue_files ?? []).at(-1);
    const date = (s: string): string => s.replaceAll(/# Created .*/g, '# Created DATE');
    if (one.rescue && last && date(here.read(last) ?? '') !== date(one.rescue)) diff.push(`rescue\n${one.rescue}\n / \n${here.read(last)}`);
    if (one.metrics) {
      const m = JSON.parse(here.read(`${one.argv.at(one.argv.length > 1 && one.argv[0]?.endsWith('dag') ? 0 : -1)}.metrics`) ?? '{}');
      for (const [k, v] of Object.entries(one.metrics)) if (m[k] !== v) diff.push(`metrics ${k}: ${String(v)} / ${m[k]}`);
    }
    if (one.jobstate_log) {
      const ids = new Map<string, string>();
      const ours = (here.read('js.log') ?? '').replaceAll(/^\d+/gm, 'TIME').replaceAll(/\b(\d+)\.0\b/g, (_a, c) => { if (!ids.has(c)) ids.set(c, `ID${ids.size + 1}`); return ids.get(c) as string; });
      if (ours !== one.jobstate_log) diff.push(`jobstate\n${one.jobstate_log}\n / \n${ours}`);
    }
    const sorted = (s: string | undefined): string => (s ?? '').split('\n').filter((l) => l !== '' && !l.startsWith('end ')).sort().join('\n');
    for (const [f, text] of Object.entries(one.outputs)) {
      if (/^ad\.|\.ns$|\.out$|my\.log|\.dot|\.save$|save_files/.test(f)) continue;
      if (sorted(here.read(f)) !== sorted(text)) diff.push(`output ${f}\n${text}\n / \n${here.read(f)}`);
    }
    expect(diff.join('\n')).toBe('');
  });
});
