import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent } from '../agent/agent.ts';
import { differences } from './support/compare.ts';
import { type CorpusCase, loadCorpus } from './support/corpus.ts';
import { some } from '../slow.ts';
import { RealStage } from './support/real-stage.ts';

/** The slow lane plays every case, an ordinary run every sixth. */
const CASES = some(loadCorpus(join(import.meta.dirname, '../fixtures/dag.jsonl')), 6);

/** Differences caused by jobs that run in parallel and end in another order than the recorded ones. */
const RACES: Readonly<Record<string, RegExp>> = {
  'multi proc one fails': /^node status file: .*Job proc \(ID\.1\) failed .*Job proc \(ID\.2\) failed/,
};

let agent: TestAgent;
beforeAll(async () => {
  agent = new TestAgent();
  await agent.ok('up');
}, 60_000);
afterAll(async () => {
  await agent.end();
}, 60_000);

describe.concurrent('what the real DAGMan did, through the command line and the queue', () => {
  it.each(CASES.map((one, i): [string, CorpusCase, number] => [one.name, one, i]))(
    '%s',
    async (_name, one, i) => {
      const stage = new RealStage(agent, `c${i}`, one.files);
      const outcome = await stage.play(one);
      const unexplained = differences(one, outcome, stage).filter((line) => RACES[one.name]?.test(line) !== true);
      expect(unexplained).toEqual([]);
    },
    180_000,
  );
});
