// Everything that a commit must pass: set-up, types, lint, format, build, all tests. It ends with `N passed, N failed`,
// in which each check counts as one.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { needWhatTestsUse, needModules, root } from './setup.mjs';
import { runTests } from './test.mjs';

// Vitest and the runner check this variable; setting it here gives the same result when the script is run by hand.
process.env.CI ??= 'true';
needModules();
const excluded = needWhatTestsUse([]);

const bin = (name) => join(root, 'node_modules/.bin', name);
/** @type {readonly [string, string, string[]][]} */
const CHECKS = [
  ['types', bin('tsc'), ['--noEmit', '-p', 'test/tsconfig.json']],
  ['types of the page', bin('tsc'), ['--noEmit', '-p', 'src/web/page']],
  ['lint', bin('oxlint'), ['--type-aware', '--deny-warnings', 'src', 'test', 'scripts', 'bench']],
  ['format', bin('biome'), ['format', '.']],
  ['build', process.execPath, ['scripts/build.mjs']],
];
const broken = [];
for (const [name, program, args] of CHECKS) {
  console.log(`== ${name}`);
  const { status } = spawnSync(program, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
  if (status !== 0) broken.push(name);
}

console.log('== tests');
const { passed, failed, skipped, well } = runTests([], excluded);
for (const name of broken) console.log(`failed: ${name}`);
if (skipped > 0) console.log(`${skipped} skipped`);
console.log(`${passed + CHECKS.length - broken.length} passed, ${failed + broken.length} failed`);
process.exitCode = well && failed === 0 && broken.length === 0 ? 0 : 1;
