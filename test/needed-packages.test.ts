import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { chosenTests, isNeeded, withImports } from '../scripts/needed-packages.mjs';

const root = resolve(import.meta.dirname, '..');
const PACKAGES = z.object({
  packages: z.array(z.object({ name: z.string(), tests: z.array(z.string()), uses: z.array(z.string()).default([]) })),
});
const { packages } = PACKAGES.parse(JSON.parse(readFileSync(join(root, 'scripts/debian-packages.json'), 'utf8')));

function needed(...words: string[]): string[] {
  const files = withImports(root, chosenTests(root, words));
  return packages.filter((one) => isNeeded(one, files)).map(({ name }) => name);
}

describe('the Debian packages that npm test installs', () => {
  it('are none for tests that call no program', () => {
    expect(needed('test/job/')).toEqual([]);
    expect(needed('test/classad/', '-t', 'a name')).toEqual([]);
  });

  it('are those of the servers that the chosen tests start, also by their helpers', () => {
    expect(needed('./test/queue/')).toContain('redis-server');
    expect(needed('test/queue/')).not.toContain('slurm-wlm');
    expect(needed('test/conformance/slurm')).toEqual(expect.arrayContaining(['openssh-server', 'slurm-wlm', 'munge']));
    expect(needed('test/conformance/slurm')).not.toContain('docker.io');
  });

  it('are all of them for all tests', () => {
    expect(needed()).toEqual(packages.map(({ name }) => name));
    expect(needed('-t', 'the name of a test')).toHaveLength(packages.length);
  });

  it('name files that are there', () => {
    const plain = packages.flatMap(({ uses }) => uses).filter((glob) => !/[*{]/.test(glob));
    expect(plain.filter((file) => !existsSync(join(root, file)))).toEqual([]);
  });
});
