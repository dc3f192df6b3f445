import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { TestAgent, until } from './agent.ts';
import { processesOf } from './kill.ts';

const FOLDER = join(import.meta.dirname, '../../examples/pi');
const agent = new TestAgent();
afterAll(() => agent.end());

/** As `npm start` runs it after building. */
function sweep() {
  const child = spawn(process.execPath, [join(FOLDER, 'run.mjs')], { env: agent.env, stdio: 'pipe' });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (said += text));
  const code = new Promise<number | null>((resolve) => child.once('close', resolve));
  return { child, code, said: () => said };
}

it('the sweep of npm start ends well, and leaves nothing running', async () => {
  const { code, said } = sweep();
  expect({ code: await code, said: said() }).toMatchObject({
    code: 0,
    said: expect.stringMatching(/\npi ≈ 3\.1[34]\d\d \(200 jobs, 0 failed\)\n$/),
  });
  expect(readdirSync(join(FOLDER, 'results')).filter((name) => name.startsWith('hits.'))).toHaveLength(200);
  expect(processesOf('.', agent)).toEqual([]);
}, 240_000);

it('interrupted, it leaves nothing running either', async () => {
  const { child, code, said } = sweep();
  await until('some jobs to be done', () => said().includes(' jobs done, ') || undefined, 120_000);
  child.kill('SIGINT');
  expect(await code).toBe(130);
  expect(processesOf('.', agent)).toEqual([]);
}, 240_000);
