import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TestAgent, until } from '../agent/agent.ts';
import { processesOf } from '../agent/kill.ts';
import { SLOW } from '../slow.ts';

/** The bytes with this many of them, from there on, as zeros. */
const withHole = (bytes: Buffer, from: number, to: number) => Buffer.from(bytes).fill(0, from, to);

/** The bytes with one bit flipped. */
function flipped(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[at] = (copy[at] ?? 0) ^ 1;
  return copy;
}

const GRANT = '{"r":"g"';

describe.skipIf(!SLOW)('the journal of the pool, while a worker runs jobs', () => {
  let agent: TestAgent;
  beforeEach(async () => {
    agent = new TestAgent();
    agent.config('[pool]\ncpus = 2\n[gridmanager]\nretry_min = "1s"\nretry_max = "2s"\nrestart_max = "5s"\n');
    await agent.ok('up');
  }, 120_000);
  afterEach(() => agent.end());

  it.each<readonly [string, (bytes: Buffer) => Buffer]>([
    ['was cut in its first record', (bytes) => bytes.subarray(0, bytes.indexOf('{"r"') + 5)],
    ['was cut before the grants', (bytes) => bytes.subarray(0, bytes.lastIndexOf('\n', bytes.indexOf(GRANT)) + 1)],
    ['was cut to nothing', () => Buffer.alloc(0)],
    // Another job's number: all else of the line is as it was.
    [
      'has a flipped bit in the key of a grant',
      (bytes) => flipped(bytes, bytes.indexOf('.0.1"', bytes.indexOf(GRANT)) + 1),
    ],
    ['has a flipped bit at the end', (bytes) => flipped(bytes, bytes.length - 4)],
    ['has a hole in the middle', (bytes) => withHole(bytes, bytes.indexOf(GRANT) - 100, bytes.indexOf(GRANT) + 30)],
    ['has a hole at its end', (bytes) => withHole(bytes, bytes.indexOf(GRANT) - 100, bytes.length)],
    ['is one hole', (bytes) => withHole(bytes, 0, bytes.length)],
  ])(
    '%s: says so, nothing runs twice without a release, and all jobs end',
    async (_, damage) => {
      const script = `echo $(Process) >>${agent.work}/ledger; while [ ! -e ${agent.work}/go ]; do sleep 0.1; done`;
      const cluster = await agent.submit(
        `executable = /bin/sh\ntransfer_executable = false\nrequest_memory = 20M\narguments = "-c '${script}'"\nqueue 2\n`,
      );
      const started = () =>
        existsSync(join(agent.work, 'ledger')) ? agent.read('ledger').trim().split('\n').toSorted() : [];
      await until('both to run', () => started().length === 2 || undefined);
      await agent.ok('wait', '--until', 'start', '--timeout', '60', String(cluster));
      const journal = join(agent.home, 'state/pool/journal');
      const [centralManager = 0] = processesOf('central-manager-main', agent);
      process.kill(centralManager, 'SIGKILL');
      writeFileSync(journal, damage(readFileSync(journal)));
      await until('the reason', async () => (await agent.ok('why', String(cluster))).includes(journal) || undefined);
      expect(await agent.ok('why', String(cluster))).toMatch(
        /Line \d+ of the pool's journal \S+ (is damaged|is missing)/,
      );
      expect(await agent.ok('status')).toContain(journal);
      renameSync(journal, `${journal}.damaged`);
      const states = async () => (await agent.ads(cluster)).map((ad) => ad['JobStatus']);
      await until('both to be held', async () => (await states()).every((is) => is === 5) || undefined);
      for (const ad of await agent.ads(cluster))
        expect(ad['HoldReason']).toBe(
          'Site pool has no record of the job any more; whether it ran there cannot be known.',
        );
      expect(started()).toEqual(['0', '1']);
      agent.file('go', '');
      await agent.ok('release', String(cluster));
      await agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster));
      for (const ad of await agent.ads(cluster)) expect(ad).toMatchObject({ JobStatus: 4, ExitCode: 0 });
      expect(started()).toEqual(['0', '0', '1', '1']);
    },
    150_000,
  );
});
