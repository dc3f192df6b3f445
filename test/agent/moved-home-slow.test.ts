import { renameSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SLOW } from '../slow.ts';
import { TestAgent } from './agent.ts';

/** More than run at once. */
const JOBS = cpus().length + 2;

describe.skipIf(!SLOW)('a home directory that moves while plain processes of this machine run', () => {
  let agent: TestAgent;
  beforeEach(() => {
    agent = new TestAgent();
    agent.config('[gridmanager]\nretry_min = "1s"\nretry_max = "2s"\n');
  });
  afterEach(() => agent.end());

  it.each(['after gryphus down', 'before gryphus down'])(
    '%s: all that run and wait there go on, once each',
    async (when) => {
      const script = `echo $(Process) >>${agent.work}/ledger; while [ ! -e ${agent.work}/go ]; do sleep 0.2; done; echo $(Process)`;
      const cluster = await agent.submit(
        `universe = grid\ngrid_resource = batch fork local\nexecutable = /bin/sh\ntransfer_executable = false\n` +
          `output = $(Process).out\narguments = "-c '${script}'"\nqueue ${JOBS}\n`,
      );
      await agent.ok('wait', '--until', 'start', '--timeout', '60', `${cluster}.0`);
      const down = when.startsWith('after');
      if (down) await agent.ok('down');
      const home = join(agent.dir, 'home of bella');
      renameSync(join(agent.dir, 'home'), home);
      // What ends there now does so before the next start, or after it.
      if (!down) {
        agent.file('go', '');
        await agent.ok('down');
      }
      agent.env['HOME'] = home;
      await agent.ok('up');
      if (down) agent.file('go', '');
      await agent.ok('wait', '--no-outcome', '--timeout', '90', String(cluster));
      for (const ad of await agent.ads(cluster))
        expect(ad).toMatchObject({ JobStatus: 4, ExitCode: 0, NumJobStarts: 1 });
      const procs = Array.from({ length: JOBS }, (_, proc) => String(proc));
      expect(agent.read('ledger').trim().split('\n').toSorted()).toEqual(procs);
      for (const proc of procs) expect(agent.read(`${proc}.out`)).toBe(`${proc}\n`);
    },
    180_000,
  );
});
