import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent, until } from '../agent/agent.ts';
import { killMatching } from '../agent/kill.ts';
import { seeded } from '../seeded.ts';
import { SLOW } from '../slow.ts';

const TASKS = 10_000;
const VICTIMS = ['pool/central-manager/central-manager-main.js', 'worker.mjs', 'scheduler/main.js'] as const;

describe.skipIf(!SLOW)('ten thousand tasks while the pool’s processes are killed at random', () => {
  let agent: TestAgent;

  beforeAll(async () => {
    agent = new TestAgent();
    agent.config('[pool]\ncpus = 8\n[gridmanager]\nrestart_max = "100ms"\n');
    await agent.ok('up');
  }, 120_000);
  afterAll(async () => {
    killMatching('worker.mjs', agent);
    await agent.end();
  });

  it('leave one line each', async () => {
    const ledger = join(agent.work, 'ledger');
    const lines = () => (existsSync(ledger) ? readFileSync(ledger, 'utf8').trim().split('\n') : []);
    const map = agent.start(['map', `echo {} >> ${ledger}; echo {}`]);
    map.stdin?.end(Array.from({ length: TASKS }, (_, i) => `${i}\n`).join(''));
    let said = '';
    map.stdout?.setEncoding('utf8').on('data', (text: string) => (said += text));
    const state = { over: false };
    const ended = new Promise<number | null>((resolve) => map.once('close', resolve)).finally(() => {
      state.over = true;
    });
    const random = seeded(7);
    let kills = 0;
    for (let next = 100; !state.over; next = lines().length + 200 + Math.floor(random() * 600)) {
      await until('more tasks to run', () => state.over || lines().length > next || undefined, 300_000);
      if (state.over) break;
      killMatching(VICTIMS[kills++ % VICTIMS.length] ?? 'worker.mjs', agent);
      await agent.ok('up');
    }
    expect(await ended).toBe(0);
    const each = Array.from({ length: TASKS }, (_, i) => String(i)).sort();
    expect(said.trim().split('\n').sort()).toEqual(each);
    expect(lines().sort()).toEqual(each);
    expect(kills).toBeGreaterThan(5);
  }, 1_800_000);
});
