import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { TestAgent } from '../agent/agent.ts';

/** The fields that docs/json.md lists for each command, from the code spans of its row. */
const page = readFileSync(join(import.meta.dirname, '../../docs/json.md'), 'utf8');
const rows = page
  .split('\n')
  .filter((line) => line.startsWith('| `'))
  .map((line) => line.split(' | '));
const spans = (text: string) => [...text.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);

function documented(command: string): Set<string> {
  const row = rows.find(([commands = '']) => spans(commands).includes(command));
  const names = spans((row ?? []).slice(1).join(' '));
  return new Set(command === 'status' ? [...names, ...documented('site list')] : names);
}

/** All field names in a JSON value, at any depth. */
function namesIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(namesIn);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => [name, ...namesIn(inner)]);
}

const agent = new TestAgent();
beforeAll(async () => {
  agent.file('sleep.sub', 'executable = /bin/sleep\narguments = 600\ntransfer_executable = false\nqueue\n');
  agent.file('true.sub', 'executable = /bin/true\nrequst_cpus = 1\ntransfer_executable = false\nqueue\n');
  agent.file('one.dag', 'JOB a true.sub\nJOB b true.sub\nPARENT a CHILD b\n');
  agent.file('bad.dag', 'JOB a true.sub\nRETRY nosuch 1\n');
  await agent.ok('submit', 'sleep.sub');
  await agent.ok('wait', '--until', 'start', '1.0');
});
afterAll(async () => {
  await agent.run(['rm', '--all']);
  await agent.run(['wait', '--constraint', 'true', '--timeout', '60']);
  await agent.end();
});

it.each([
  ['submit', 'true.sub'],
  ['wait', '2'],
  ['top', '--all'],
  ['hold', '1.0'],
  ['wait', '1.0 --until settled'],
  ['why', ''],
  ['status', ''],
  ['usage', ''],
  ['userprio', ''],
  ['reserve', ''],
  ['site list', ''],
  ['site test', 'local'],
  ['site audit', 'local'],
  ['glidein list', ''],
  ['cred list', ''],
  ['dag submit', 'one.dag'],
  ['dag lint', 'bad.dag'],
  ['dag status', ''],
  ['rm', '--all'],
  ['down', ''],
])('the names that `%s %s --json` prints are those of docs/json.md', async (command, words) => {
  const { stdout } = await agent.run([...command.split(' '), ...words.split(' ').filter(Boolean), '--json']);
  const answer: unknown = JSON.parse(stdout);
  const known = documented(command);
  expect(known.size).toBeGreaterThan(0);
  expect(namesIn(answer).filter((name) => !known.has(name))).toEqual([]);
  const row = rows.find(([commands = '']) => spans(commands).includes(command)) ?? [];
  expect(Array.isArray(answer)).toBe(row[1]?.startsWith('array'));
});

it('says in JSON whether the time ran out', async () => {
  agent.file('long.sub', 'executable = /bin/sleep\narguments = 600\ntransfer_executable = false\nqueue\n');
  const cluster = /^\d+/.exec(await agent.ok('submit', '--terse', 'long.sub'))?.[0] ?? '';
  const { code, stdout } = await agent.run(['wait', cluster, '--timeout', '0', '--json']);
  expect({ code, said: JSON.parse(stdout) as unknown }).toEqual({ code: 1, said: { done: false, held: 0 } });
});
