import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Kind, startTarget, type Target } from '../crash/sites.ts';
import { skipWithoutSlurm } from '../sites/slurm.ts';
import { GlideinAgent } from './ground.ts';

const KIND: Kind = skipWithoutSlurm() ? 'fork, ssh' : 'slurm, ssh';
const SITE = KIND === 'slurm, ssh' ? 'cluster' : 'there';

describe(`a map with a worker of this machine and one through ${KIND}`, () => {
  let agent: GlideinAgent;
  let target: Target;

  beforeAll(async () => {
    agent = new GlideinAgent();
    agent.config('[pool]\ncpus = 1\n[glidein]\nnode = "own"\ndisk = "10M"\nidle = "5m"\n');
    target = await startTarget(KIND, agent);
    await agent.ok('up');
    await agent.ok('glidein', 'start', '--site', SITE, '-n', '1', '--walltime', '20m', '--cores', '3');
    await agent.untilHome();
  }, 120_000);
  afterAll(async () => {
    await agent.end();
    await target?.stop();
  });

  const write = (name: string, text: string): string => {
    mkdirSync(dirname(join(agent.work, name)), { recursive: true });
    agent.file(name, text);
    return name;
  };
  /** Tasks report where they run: which of these workers was not in this machine's pool. */
  const elsewhere = (said: string) =>
    said.split('\n').filter((line) => line.startsWith('/') && !line.startsWith(agent.dir));

  it('runs tasks without files where the files are', async () => {
    const names = Array.from({ length: 60 }, (_, i) => write(`d${i}.txt`, `text ${i}\n`));
    const { code, stderr } = await agent.run(['map', 'gzip {} && sleep 0.05', ':::', ...names]);
    expect(stderr).toBe('');
    expect(code).toBe(0);
    for (const [i, name] of names.entries())
      expect(gunzipSync(readFileSync(join(agent.work, `${name}.gz`))).toString()).toBe(`text ${i}\n`);
  });

  it('carries the files of a task to the worker that runs it, and its results back', async () => {
    const names = Array.from({ length: 12 }, (_, i) => write(`logs/${i} "a" $(touch oops) ü.log`, `log ${i}\n`));
    const words = ['--transferfile', '{}', '--input', 'level', '--return', 'out/{/.}.gz'];
    write('level', '9');
    const { code, stdout, stderr } = await agent.run([
      'map',
      ...words,
      'mkdir out && gzip -"$(cat level)" -c {} >out/{/.}.gz && pwd && sleep 0.5',
      ':::',
      ...names,
    ]);
    expect(stderr).toBe('');
    expect(code).toBe(0);
    for (const [i, name] of names.entries()) {
      const made = join(agent.work, name.replace('logs/', 'out/').replace(/log$/, 'gz'));
      expect(gunzipSync(readFileSync(made)).toString()).toBe(`log ${i}\n`);
      expect(agent.read(name)).toBe(`log ${i}\n`);
    }
    expect(existsSync(join(agent.work, 'oops'))).toBe(false);
    const far = elsewhere(stdout).length;
    expect(far).toBeGreaterThan(0);
    expect(far).toBeLessThan(names.length);
  });

  it('takes --input with a place for a file of the task, and a directory with all it holds', async () => {
    write('one/a/x', 'x1');
    write('two/a/x', 'x2');
    const { stdout } = await agent.run(['map', '-k', '--input', '{}', 'cat {}/a/x; echo', ':::', 'one', './two/']);
    expect(stdout).toBe('x1\nx2\n');
  });

  it('runs tasks that need no files anywhere', async () => {
    const { code, stdout } = await agent.run([
      'map',
      '--anywhere',
      'pwd; sleep 0.3 #',
      ':::',
      'a',
      'b',
      'c',
      'd',
      'e',
      'f',
      'g',
      'h',
    ]);
    expect(code).toBe(0);
    expect(elsewhere(stdout).length).toBeGreaterThan(0);
  });

  it('says what a task did not make, which file is not there, and which it cannot take along', async () => {
    write('there', '');
    const no = await agent.run([
      'map',
      '--return',
      '{}.out',
      '--retries',
      '1',
      'touch {}.out; rm -f b.out #',
      ':::',
      'a',
      'b',
    ]);
    expect(no.stderr).toBe("gryphus: b: it did not create 'b.out'\n");
    expect(no.code).toBe(1);
    expect(existsSync(join(agent.work, 'a.out'))).toBe(true);
    const absent = await agent.run(['map', '--tf', '{}', 'cat {}', ':::', 'absent', 'there']);
    expect(absent.stderr).toMatch(/^gryphus: absent: The input \S+\/absent does not exist or cannot be read\.\n$/);
    expect(absent.code).toBe(1);
    for (const name of ['/etc/passwd', '../x', 'a/../../x', '.']) {
      const outside = await agent.run(['map', '--transferfile', '{}', 'cat {}', ':::', name]);
      expect(outside.stderr).toMatch(/^gryphus: A task cannot transfer .*: it is not below \/tmp\/.*\n {2}→ /);
      expect(outside.code).toBe(2);
    }
  });
});
