import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent } from '../agent/agent.ts';
import { differences } from './support/compare.ts';
import { type CorpusCase, loadCorpus } from './support/corpus.ts';
import { RealStage } from './support/real-stage.ts';

/** In the slow lane every case is played, else every second one; what takes long for its sleeps is left to it. */
const SLOW = process.env['GRYPHUS_SLOW'] === '1';
const ALL = loadCorpus(join(import.meta.dirname, '../fixtures/dag.jsonl'));
const CASES = SLOW ? ALL : ALL.filter((_one, i) => i % 3 === 0);

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
      expect(differences(one, outcome, stage)).toEqual([]);
    },
    180_000,
  );
});
