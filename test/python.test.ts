import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLI, TestAgent } from './agent/agent.ts';
import { shellQuote } from '../src/util/shell-quote.ts';

const PYTHON = '/usr/bin/python3';
const ROOT = join(import.meta.dirname, '..');

describe("Python's module", { timeout: 240_000 }, () => {
  const agent = new TestAgent();
  const program = join(agent.dir, 'gryphus');
  beforeAll(async () => {
    agent.config('[pool]\ncpus = 4\n');
    writeFileSync(program, `#!/bin/sh\nexec ${shellQuote(process.execPath)} ${shellQuote(CLI)} "$@"\n`, {
      mode: 0o755,
    });
    await agent.ok('up');
  }, 120_000);
  afterAll(() => agent.end());

  it('passes its own tests, with a private agent', () => {
    const { status, stderr } = spawnSync(PYTHON, ['-m', 'unittest', '-v'], {
      cwd: join(ROOT, 'python/tests'),
      env: {
        ...agent.env,
        GRYPHUS: program,
        PYTHONPATH: join(ROOT, 'python'),
        PYTHONDONTWRITEBYTECODE: '1',
      },
      encoding: 'utf8',
    });
    expect(status, stderr).toBe(0);
    expect(stderr).toMatch(/Ran 2\d tests/);
  });

  it('uses the version of the interface that the server has', async () => {
    const { base } = JSON.parse(await agent.ok('api', '--json')) as { base: string };
    const words = ['-c', 'import gryphus._client as c; print(c.BASE)'];
    const own = spawnSync(PYTHON, words, { env: { ...agent.env, PYTHONPATH: join(ROOT, 'python') }, encoding: 'utf8' });
    expect(own.stdout).toBe(`${base}\n`);
  });
});
