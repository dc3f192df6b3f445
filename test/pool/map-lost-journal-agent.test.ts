import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { TestAgent, until } from '../agent/agent.ts';
import { processesOf } from '../agent/kill.ts';

let agent: TestAgent;
beforeEach(async () => {
  agent = new TestAgent();
  agent.config('[pool]\ncpus = 4\n[gridmanager]\nrestart_max = "1s"\n');
  await agent.ok('up');
}, 60_000);
afterEach(() => agent.end());

it('a map goes on when the journal of the pool was damaged and moved away, and says what may run again', async () => {
  const program = 'echo {} >>ledger; while [ ! -e go ]; do sleep 0.1; done; echo done {}';
  const map = agent.run(['map', '-k', program, ':::', 'a', 'b']);
  await until('two tasks to run', () => {
    try {
      return agent.read('ledger').trim().split('\n').length === 2 || undefined;
    } catch {
      return undefined;
    }
  });
  const journal = join(agent.home, 'state/pool/journal');
  const [centralManager = 0] = processesOf('central-manager-main', agent);
  const bytes = readFileSync(journal);
  const at = bytes.indexOf('{"r":"g"') + 20;
  process.kill(centralManager, 'SIGKILL');
  bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
  writeFileSync(journal, bytes);
  await until('the reason', async () => (await agent.ok('status')).includes('is damaged') || undefined);
  renameSync(journal, `${journal}.damaged`);
  await until('them to run again', () => agent.read('ledger').trim().split('\n').length === 4 || undefined);
  agent.file('go', '');
  const { code, stdout, stderr } = await map;
  expect(stderr).toBe(
    'gryphus: The pool has lost its records. These tasks start again, although they may have run, at least in part: a, b.\n',
  );
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'done a\ndone b\n' });
  expect(agent.read('ledger').trim().split('\n').toSorted()).toEqual(['a', 'a', 'b', 'b']);
}, 120_000);
