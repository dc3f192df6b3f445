import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BareMachine, startMachine } from '../sites/bare-machine.ts';
import { skipWithoutBare } from '../sites/bare-root.ts';
import { SLOW } from '../slow.ts';

const PACKAGE = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  readonly scripts: Readonly<Record<string, string>>;
};

describe.skipIf(!SLOW || skipWithoutBare())("with Debian 12's own Node", () => {
  let machine: BareMachine;
  beforeAll(async () => {
    machine = await startMachine({ oldNode: true });
    machine.clone('me', '/home/me/gryphus');
    machine.copy('me', 'dist', '/home/me/gryphus');
  }, 300_000);
  afterAll(() => machine.stop());

  it.each([
    ['npm start', PACKAGE.scripts['start']],
    ['npm test', PACKAGE.scripts['test']],
    ['npm run build', PACKAGE.scripts['build']],
    ['.ci/run', '.ci/run'],
    ['gryphus', 'dist/bin/gryphus.js q'],
    ['gryphus --version', 'dist/bin/gryphus.js --version'],
    ['a worker', 'node dist/worker.mjs no-such-file'],
  ])('%s says in one line that it is too old', async (_, script) => {
    expect(script).toBeDefined();
    const { exit, text } = await machine.run('me', script ?? '', { cwd: '/home/me/gryphus' });
    expect(text).toMatch(
      /^gryphus: Node 20\.19 or later is needed; this is 18\.\d+\.\d+ \([^ ]*\)\. See https:[^ ]+\n$/,
    );
    expect(exit).toBe(69);
  });
});
