import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { differences } from './support/compare.ts';
import { type CorpusCase, loadCorpus, type Outcome, Stage } from './support/corpus.ts';

const CASES = loadCorpus(join(import.meta.dirname, '../fixtures/dag.jsonl'));

/** Intended differences from DAGMan 25.14; each is described in docs/compatibility.md. */
const KNOWN: Readonly<Record<string, RegExp>> = {
  'use strict 2 with category warning': /^(node status file|rescue file|rescue files|metrics \w+): /,
};

let stage: Stage | undefined;
afterEach(() => {
  stage?.close();
  stage = undefined;
});

/** Plays all steps of a case; returns the outcome of the last submit. */
async function play(one: CorpusCase, here: Stage): Promise<Outcome> {
  const hangs = typeof one.dagman_exit === 'string' && one.dagman_exit.startsWith('still');
  const steps = one.steps ?? [{ submit: one.argv }];
  let outcome: Outcome | undefined;
  for (const [i, step] of steps.entries()) {
    for (const [name, text] of Object.entries(step.write ?? {})) here.write(name, text);
    if (step.rm !== undefined) here.removeMatching(step.rm);
    if (step.submit === undefined) continue;
    const removed = steps.slice(i + 1).some((later) => later.condor?.[0] === 'condor_rm');
    outcome = await here.submit(step.submit, (world) => {
      if (step.nowait === true && removed) world.at(10, { is: 'told', event: { is: 'remove' } });
      else if (hangs) world.at(300, { is: 'told', event: { is: 'remove' } });
    });
  }
  if (outcome === undefined) throw new Error(`${one.name} submits nothing`);
  return outcome;
}

describe('what the real DAGMan did', () => {
  it.each(CASES)('$name', async (one) => {
    stage = new Stage(one.files);
    const outcome = await play(one, stage);
    const known = KNOWN[one.name];
    const unexplained = differences(one, outcome, stage).filter((line) => known?.test(line) !== true);
    expect(unexplained).toEqual([]);
  });
});

describe('what is wrong in a DAG is named with its place', () => {
  const wrong = CASES.filter(
    (one) => one.checker !== undefined && one.name !== 'err cycle two' && one.name !== 'err cycle three',
  );
  it.each(wrong)('$name', async (one) => {
    stage = new Stage(one.files);
    const outcome = await stage.submit(one.argv);
    // `Detected 1 issue in x.dag:\n\t* x.dag:2 Failed to parse …`
    const real = /\* (\S+:\d+) /.exec(one.checker ?? '')?.[1];
    // For a file as a whole there is no line 0 here.
    const place = one.name.startsWith('err cycle') ? 'x.dag:1' : real?.replace(/:0$/, '');
    expect(outcome.refused).toContain(`${place} `);
    expect(outcome.world?.submits ?? []).toEqual([]);
  });
});

describe('messages of the log that tools look for', () => {
  const WANTED =
    /^(Node .* failed with|POST Script of|PRE Script of|Retrying node|Aborting DAG|Writing Rescue|DAG status: [1-6]|Warning: (?!Attempt|VAR|category|higher|new|exit|node)|Deferring|USING RESCUE|Node submit failed|Shortcutting|.*Error: (Job|PRE|POST))/;
  it.each(CASES.filter((one) => one.submit_exit === 0))('$name', async (one) => {
    stage = new Stage(one.files);
    const outcome = await play(one, stage);
    if (outcome.refused !== undefined) return;
    const mask = (line: string): string => line.replaceAll(/\((ID|\d+)\.(\d+)(\.0)?\)/g, '(ID.$2)');
    const ours = new Set(outcome.messages.map(mask));
    expect(
      one.messages
        .filter((line) => WANTED.test(line))
        .map(mask)
        .filter((line) => !ours.has(line)),
    ).toEqual([]);
  });
});
