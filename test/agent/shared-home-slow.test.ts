import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readPid } from '../../src/util/pid-file.ts';
import { SLOW } from '../slow.ts';
import { TestAgent, until } from './agent.ts';
import { CAN_SHARE, SharingMachine } from './shared-home.ts';

const STARTS = 4;

describe.skipIf(!SLOW || !CAN_SHARE).each(['shared', 'own'] as const)(
  'a home that two machines share, on a file system whose locks are %s',
  (locks) => {
    let agent: TestAgent;
    let front: SharingMachine;
    let other: SharingMachine;
    beforeEach(async () => {
      agent = new TestAgent();
      agent.file('job.sub', 'executable = /bin/true\ntransfer_executable = false\nhold = true\nqueue\n');
      front = await SharingMachine.start(agent, 'front', locks);
      other = await SharingMachine.start(agent, 'other', locks);
    });
    afterEach(async () => {
      await Promise.all([front.end(), other.end()]);
      await agent.end();
    });

    const ok = async (machine: SharingMachine, ...words: readonly string[]) => {
      const { code, stdout, stderr } = await machine.run(...words);
      if (code !== 0) throw new Error(`gryphus ${words.join(' ')} ended with ${code}:\n${stdout}${stderr}`);
      return stdout;
    };
    const submit = async (machine: SharingMachine) =>
      Number(/^(\d+)\./.exec(await ok(machine, 'submit', '--terse', 'job.sub'))?.[1]);
    const clusters = async (machine: SharingMachine) => {
      const ads = JSON.parse(await ok(machine, 'q', '--json')) as Record<string, unknown>[];
      return ads.map((ad) => Number(ad['ClusterId'])).toSorted((a, b) => a - b);
    };

    it('tells the other which one uses it, and nothing there is ended by what the files say', async () => {
      expect(await submit(front)).toBe(1);
      const ours = front.daemons();
      // On the other machine, any process may have the number of this one's Redis.
      const pid = readPid(join(agent.home, 'state/redis/redis.pid')) ?? 0;
      other.sh(
        `until [ "$!" = ${pid} ]; do echo ${pid - 1} >/proc/sys/kernel/ns_last_pid; sleep 600 >/dev/null 2>&1 & done`,
      );
      expect(other.sh(`cat /proc/${pid}/comm`)).toBe('sleep\n');
      for (const words of [['q'], ['up'], ['down']]) {
        const { code, stderr } = await other.run(...words);
        expect(`${words[0]}: ${stderr}`).toMatch(/(in use|is used) on host front/);
        expect(code).toBe(75);
      }
      const status = await other.run('status');
      expect(status.stdout).toContain('not running; the state was last used on host front');
      expect(status.code).toBe(3);
      expect(other.sh(`cat /proc/${pid}/comm`)).toBe('sleep\n');
      expect(front.daemons()).toEqual(expect.arrayContaining([...ours]));
      expect(await submit(front)).toBe(2);
      // In order, it is free at once; after a power failure, when it was watched.
      await ok(front, 'down');
      expect(await submit(other)).toBe(3);
      await other.die();
      expect(await clusters(front)).toEqual([1, 2, 3]);
    }, 300_000);

    it('is used by one of two that start at the same moment', async () => {
      expect(await submit(front)).toBe(1);
      await ok(front, 'down');
      for (let start = 0; start < STARTS; start++) {
        const both = await Promise.all([front.run('up'), other.run('up')]);
        expect(
          both.map(({ code }) => Number(code)).toSorted((a, b) => a - b),
          JSON.stringify(both),
        ).toEqual([0, 75]);
        const winner = both[0].code === 0 ? front : other;
        expect(await submit(winner)).toBe(start + 2);
        await ok(winner, 'down');
      }
      expect(await clusters(front)).toEqual(Array.from({ length: STARTS + 1 }, (_, i) => i + 1));
    }, 300_000);

    it('loses nothing when one sleeps, the other takes over, and the first wakes', async () => {
      expect(await submit(front)).toBe(1);
      front.signal('STOP');
      const taken = await other.run('submit', '--terse', 'job.sub');
      if (locks === 'shared') {
        // Its Redis still has its lock, which ends with a machine that dies.
        expect(taken.stderr).toContain('is in use on host front.');
        front.signal('CONT');
        expect(await submit(front)).toBe(2);
        return;
      }
      expect(taken.stdout).toMatch(/^2\./);
      front.signal('CONT');
      expect(await submit(other)).toBe(3);
      await until('the first to end', () => front.daemons().length === 0 || undefined, 20_000);
      expect((await front.run('q')).stderr).toContain('is in use on host other.');
      expect(await submit(other)).toBe(4);
      await ok(other, 'down');
      expect(await clusters(other)).toEqual([1, 2, 3, 4]);
    }, 300_000);
  },
);
