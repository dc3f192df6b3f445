import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { childrenOf } from '../../src/pool/host/processes.ts';
import type { Run } from '../../src/pool/worker/run.ts';
import { sweep } from '../../src/pool/worker/stopping.ts';

it('what forked away from a run is killed; its waiter, which is about to end, is left to its shell', async () => {
  const key = `sweep-${process.pid}`;
  const waiter = `env GRYPHUS_KEY=${key} sh -c 'sleep 600 & echo ready; read line; exit 3'; echo "ended with $?"`;
  const shell = spawn('/bin/sh', ['-c', waiter], { stdio: ['pipe', 'pipe', 'inherit'] });
  await once(shell.stdout, 'data');
  const [waiting = 0] = childrenOf(shell.pid ?? 0);
  const forked = childrenOf(waiting);
  expect(forked).toHaveLength(1);
  let swept = false;
  const run = { key, record: {}, shell: { pid: shell.pid ?? 0, started: '' }, dir: { swept: () => (swept = true) } };
  await sweep(run as unknown as Run, []);
  expect(swept).toBe(true);
  const said = once(shell.stdout, 'data');
  shell.stdin.end('\n');
  expect(String((await said)[0])).toBe('ended with 3\n');
  expect(() => process.kill(forked[0] ?? 0, 0)).toThrow('ESRCH');
});
