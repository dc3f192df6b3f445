import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type StepProxy, stepProxy } from '../queue/step-proxy.ts';
import { seeded } from '../seeded.ts';
import { SLOW } from '../slow.ts';
import { TestAgent } from './agent.ts';

const [RUNS, JOBS] = SLOW ? [100, 1000] : [3, 100];
const MOST_MS = 40;

describe('submit --wait', () => {
  const agent = new TestAgent();
  const random = seeded(1);
  let proxy: StepProxy;
  beforeAll(async () => {
    agent.config('[pool]\ncpus = 4\n');
    await agent.ok('up');
    proxy = await stepProxy(readFileSync(join(agent.home, 'state/redis/socket'), 'utf8').trim());
    // Jobs end and leave the queue between any two requests of the waiting client.
    proxy.step = () => new Promise((resume) => setTimeout(resume, random() * MOST_MS));
  }, 120_000);
  afterAll(async () => {
    proxy.close();
    await agent.end();
  });

  it(
    `calls ${RUNS} × ${JOBS} short jobs good that are, while they move between its looks, and finds the one that is not`,
    async () => {
      const file = (bad: number) =>
        agent.file(
          `${bad}.sub`,
          `executable = /bin/sh\ntransfer_executable = false\narguments = "-c 'exit $INT(bad)'"\nbad = ($(Process) == ${bad})\nqueue ${JOBS}\n`,
        );
      const env = { REDIS_URL: proxy.url };
      const codes: (number | null)[] = [];
      for (let run = 0; run < RUNS; run++) {
        const bad = run % 10 === 1 ? Math.floor(random() * JOBS) : -1;
        const { code, stderr } = await agent.run(['submit', '--wait', file(bad)], { env });
        const good = bad < 0;
        if (good ? code !== 0 : !stderr.includes(`1 of ${JOBS} jobs failed: 1 exit status 1`))
          throw new Error(`run ${run}: ${code}: ${stderr}`);
        codes.push(code);
      }
      expect(codes.filter((code) => code === 0)).toHaveLength(RUNS - Math.ceil((RUNS - 1) / 10));
    },
    RUNS * 60_000,
  );
});
