import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readmeBlocks } from '../readme.ts';
import { type BareMachine, startMachine } from '../sites/bare-machine.ts';
import { skipWithoutBare } from '../sites/bare-root.ts';
import { SLOW } from '../slow.ts';

const LONG_MS = 600_000;

describe.skipIf(skipWithoutBare())('a machine that has Node and npm and nothing else', () => {
  let machine: BareMachine;
  beforeAll(async () => {
    machine = await startMachine();
  }, LONG_MS);
  afterAll(() => machine.stop());

  it('has no git, no compiler and no Redis', async () => {
    for (const name of ['git', 'cc', 'gcc', 'make', 'python3', 'redis-server', 'valkey-server', 'ssh', 'ps'])
      expect((await machine.run('me', `command -v ${name}`)).exit, name).not.toBe(0);
    expect((await machine.run('me', 'ls /var/lib/apt/lists')).text).not.toContain('_Packages');
  });

  it.skipIf(!SLOW)(
    'runs the first command of the README, as root',
    async () => {
      machine.clone('root', '/root/gryphus');
      const { exit, text } = await machine.run('root', 'npm start', { cwd: '/root/gryphus' });
      expect(text).toContain('Fetching a Redis server: this machine has none.');
      expect(text).toContain('pi ≈ 3.1411 (200 jobs, 0 failed)');
      expect(exit).toBe(0);
      // Nothing on the system has changed, and no process is left running.
      expect(
        (await machine.run('root', 'dpkg-query -W redis-server redis-tools; ls /var/lib/apt/lists')).text,
      ).not.toMatch(/redis-tools\t\d|_Packages/);
      expect(await running(machine)).toEqual([]);
    },
    LONG_MS,
  );

  it(
    'runs what the README has for this machine, block by block, as an ordinary user',
    async () => {
      const blocks = readmeBlocks('sh');
      const library = readmeBlocks('ts').get('As a library')?.[0] ?? '';
      machine.clone('me', '/home/me/gryphus');
      const started = await machine.run('me', 'npm start', { cwd: '/home/me/gryphus' });
      expect(started.text).toContain('(200 jobs, 0 failed)');
      const setUp =
        'mkdir -p ~/.local/bin w/node_modules\ncd ~/gryphus\nln -s "$PWD/dist/bin/gryphus.js" ~/.local/bin/gryphus\n';
      await machine.run('me', `${setUp}ln -s "$PWD" ~/w/node_modules/gryphus`);
      const paste = async (script: string) => {
        const { exit, text } = await machine.run('me', `set -e\nPATH=$HOME/.local/bin:$PATH\n${script}`, {
          cwd: '/home/me/w',
        });
        expect({ exit, text }).toMatchObject({ exit: 0 });
        return text;
      };
      const [first = '', map = ''] = blocks.get('Your first job') ?? [];
      const { text: name } = await machine.run('me', 'cat /proc/sys/kernel/hostname');
      expect((await paste(first)).trimEnd().split('\n').at(-1)).toBe(name.trim());
      await paste(`${map}ls part*.txt.gz | wc -l | grep -qx 3`);
      expect(await paste(blocks.get('A workflow')?.[0] ?? '')).toMatch(/chain.dag.*: done/);
      await paste(`cat >lib.mjs <<'EOF'\n${library}EOF\nnode lib.mjs`);
      await paste('gryphus down');
      expect(await running(machine)).toEqual([]);
    },
    LONG_MS,
  );
});

/** The command lines of all processes in the machine except its first ones. */
async function running(machine: BareMachine): Promise<string[]> {
  const { text } = await machine.run(
    'root',
    'for p in /proc/[0-9]*; do tr "\\0" " " <$p/cmdline; echo; done 2>/dev/null',
  );
  return text.split('\n').filter((line) => /node|redis/.test(line));
}
