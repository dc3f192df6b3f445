import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { LocalTransport } from '../../src/transport/local.ts';
import { shellQuote } from '../../src/util/shell-quote.ts';
import { TestAgent } from '../agent/agent.ts';
import { ground } from './grounds.ts';
import { type Ground, scratchDir } from './kit.ts';
import { testSite } from './suite.ts';
import { removeTree } from '../remove-tree.ts';

/**
 * docs/add-a-backend.md followed word by word: the toy's two files and the page's entry in registry.ts are added to a
 * copy of the source, and the built copy runs jobs on the toy.
 */
const ROOT = join(import.meta.dirname, '../..');
const TOY = join(ROOT, 'test/fixtures/toy-batch');
const jobs = scratchDir();
const prelude = `export TOY_DIR=${shellQuote(jobs)} PATH=${shellQuote(join(TOY, 'bin'))}:$PATH`;
let copy: string;

beforeAll(() => {
  copy = mkdtempSync(join(tmpdir(), 'gry-toy-'));
  for (const name of ['src', 'native', 'scripts', 'package.json', 'tsconfig.json'])
    cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  cpSync(join(TOY, 'backends'), join(copy, 'src/backends'), { recursive: true });
  const registry = join(copy, 'src/backends/registry.ts');
  writeFileSync(registry, withEntry(readFileSync(registry, 'utf8')));
  const built = spawnSync(process.execPath, ['scripts/build.mjs'], {
    cwd: copy,
    env: { ...process.env, GRYPHUS_DIST: 'dist' },
    encoding: 'utf8',
  });
  // Here may be no compiler for the other architecture.
  if (built.status !== 0 || /^(?!The C programs for arm64 are not built).+/m.test(built.stderr))
    throw new Error(`The copy is not built: ${built.stdout}${built.stderr}`);
}, 240_000);
afterAll(async () => {
  for (const dir of [copy, jobs]) await removeTree(dir);
});

/** The page's diff: its first line is a new import, and the others replace one line. */
function withEntry(registry: string): string {
  const page = readFileSync(join(ROOT, 'docs/add-a-backend.md'), 'utf8');
  const [, added, before, after] = /^```diff\n\+(.*)\n-(.*)\n\+(.*)\n```$/m.exec(page) ?? [];
  if (added === undefined || before === undefined || after === undefined) throw new Error('The page has no entry.');
  if (!registry.split('\n').includes(before)) throw new Error(`registry.ts has no line: ${before}`);
  return `${added}\n${registry.replace(before, after)}`;
}

async function toyGround(): Promise<Ground> {
  const client = pathToFileURL(join(copy, 'dist/jobmanager/client.js')).href;
  const { openJobManagerSite } = (await import(client)) as typeof import('../../src/jobmanager/client.ts');
  const home = scratchDir();
  const way = {
    transport: async () => new LocalTransport(home),
    stop: async () => rmSync(home, { recursive: true, force: true }),
  };
  const base = { scratch: join(home, '.gryphus'), prelude };
  return await ground('toy(local)', 'toy', home, way, 20_000, base, openJobManagerSite);
}

testSite({
  name: 'the toy of docs/add-a-backend.md',
  makeSite: toyGround,
  ordinary: [
    'says what it is, and that it is well',
    'runs a job from its files to its results, once',
    'withdraws what has not started, and kills what has',
    'continues after its JobManager was killed',
  ],
});

it('is detected, offered, warned of and used as any other batch system', async () => {
  const found = pathToFileURL(join(copy, 'dist/backends/found.js')).href;
  const { LOOK, readFound } = (await import(found)) as typeof import('../../src/backends/found.ts');
  const look = spawnSync('sh', ['-s'], { input: `${prelude}\n${LOOK}\n`, encoding: 'utf8' });
  expect(readFound(look.stdout)).toContainEqual({ batch: 'toy', message: 'toy batch 1.0', answers: true });
  const agent = new TestAgent({}, join(copy, 'dist/bin/gryphus.js'));
  try {
    await agent.ok('site', 'add', 'here', 'local', '--batch', 'toy', '--prelude', prelude, '--scratch', agent.dir);
    expect(await agent.ok('site', 'test', 'here')).toContain('toy batch 1.0');
    agent.file(
      'toy.sub',
      `universe = grid
grid_resource = batch toy here
executable = /bin/sh
transfer_executable = false
arguments = "-c 'echo hello; exit 3'"
output = out
request_disk = 1G
queue
`,
    );
    const { stderr } = await agent.run(['submit', '--wait', 'toy.sub']);
    expect(stderr).toContain('request_disk is not passed on to site here (toy).');
    expect(stderr).toContain('1 exit status 3.');
    expect(agent.read('out')).toBe('hello\n');
  } finally {
    await agent.end();
  }
});
