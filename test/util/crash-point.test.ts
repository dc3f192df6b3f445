import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';
import { afterEach, describe, expect, it } from 'vitest';
import { armCrash, crashPoint, SimulatedCrash } from '../../src/util/crash-point.ts';

afterEach(() => armCrash(undefined));

describe('crashPoint', () => {
  it('does nothing where it is not named', () => {
    armCrash('gm.before-commit');
    expect(() => crashPoint('gm.after-commit')).not.toThrow();
  });

  it('throws at the counted pass, once', () => {
    armCrash('jm.after-prepare', 2);
    crashPoint('jm.after-prepare');
    expect(() => crashPoint('jm.after-prepare')).toThrow(SimulatedCrash);
    crashPoint('jm.after-prepare');
  });

  it('kills the process with SIGKILL where the environment names it', () => {
    const { outputFiles } = buildSync({
      stdin: {
        contents: `import { crashPoint } from './crash-point.ts';
          crashPoint('gm.before-fetch'); console.log('one'); crashPoint('gm.before-fetch'); console.log('two');`,
        resolveDir: fileURLToPath(new URL('../../src/util', import.meta.url)),
      },
      bundle: true,
      platform: 'node',
      format: 'esm',
      write: false,
    });
    const run = (env: NodeJS.ProcessEnv) =>
      spawnSync('node', ['--input-type=module', '-e', outputFiles[0]?.text ?? ''], {
        encoding: 'utf8',
        env: { ...process.env, ...env },
      });
    const hit = run({ GRYPHUS_CRASH_POINT: 'gm.before-fetch:2' });
    expect([hit.signal, hit.stdout]).toEqual(['SIGKILL', 'one\n']);
    expect(run({ GRYPHUS_CRASH_POINT: '' }).stdout).toBe('one\ntwo\n');
  });
});
