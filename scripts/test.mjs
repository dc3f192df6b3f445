// `npm test`: installs what the tests need, builds, runs all of them, and ends with the line `N passed, N failed`.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { needBuild, needWhatTestsUse, needModules, root } from './setup.mjs';

/** A run that takes longer has failed, milliseconds. */
const LONGEST = 65 * 60_000;

/**
 * Runs vitest with these additional arguments, and names what failed, what needed more than one try, and what never
 * ended, which gets another try in CI, as tests do. Returns counts of tests, where a failure outside of tests counts as
 * one.
 */
export function runTests(words, excluded) {
  const first = runOnce(words, excluded);
  const again = process.env.CI && first.open.length > 0 ? runOnce(first.open, []) : undefined;
  const all = again ? [first, again] : [first];
  const lines = all.flatMap((run) => run.lines);
  const last = again ?? first;
  for (const file of first.open) if (again) lines.push(`TRIED AGAIN ${file}: did not end`);
  for (const file of last.open) lines.push(`FAILED ${file}: did not end`);
  for (const line of lines) console.log(line);
  const sum = (count) => all.reduce((total, run) => total + run[count], 0);
  // A run whose hung files were ended has failed by its status alone.
  const well = last.status === 0 && (again !== undefined || first.status === 0);
  return { passed: sum('passed'), failed: sum('failed') + last.open.length, skipped: sum('skipped'), well };
}

function runOnce(words, excluded) {
  const dir = mkdtempSync(join(tmpdir(), 'gryphus-test-'));
  const report = join(dir, 'report');
  try {
    const excludes = excluded.flatMap((glob) => ['--exclude', glob]);
    const args = ['run', '--reporter=default', '--reporter=./test/report.ts', ...excludes, ...words];
    const { status, signal, error } = spawnSync(
      process.execPath,
      [join(root, 'node_modules/vitest/vitest.mjs'), ...args],
      {
        cwd: root,
        env: { ...process.env, GRYPHUS_TEST_REPORT: report },
        stdio: ['ignore', 'inherit', 'inherit'],
        timeout: LONGEST,
        // A separate session if not at a terminal with Ctrl-C: a signal to a whole group then does not end the counting
        // process.
        detached: Boolean(process.env.CI),
      },
    );
    if (signal) console.error(`gryphus: the tests were ended by ${signal}`);
    if (error) console.error(`gryphus: the tests were ended: ${error.message}`);
    return { ...read(report), status: signal ? 1 : status };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** What test/report.ts has written. */
function read(report) {
  let records;
  try {
    records = readFileSync(report, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
  } catch {
    return { passed: 0, failed: 1, skipped: 0, open: [], lines: ['The tests left no report.'] };
  }
  const all = (state) => records.filter((record) => record.state === state);
  const ended = new Set(all('ended').map(({ file }) => file));
  const again = all('passed').filter(({ retries }) => retries > 0);
  return {
    passed: all('passed').length,
    failed: all('failed').length,
    skipped: all('skipped').length,
    open: all('begun').flatMap(({ file }) => (ended.has(file) ? [] : [relative(root, file)])),
    lines: [
      ...again.map(({ file, test, messages }) => failure('TRIED AGAIN', file, test, messages)),
      ...all('failed').map(({ file, test, messages }) => failure('FAILED', file, test ?? 'outside of tests', messages)),
    ],
  };
}

/** Where and why a test failed, a line for each try: the long report above may be cut by whoever keeps it. */
function failure(what, file, test, messages) {
  const lines = messages.map((message) => {
    const at = message.split('\n').find((line) => line.includes(`${root}/test/`));
    return `    ${message.split('\n', 1)[0].slice(0, 200)}${at ? ` (${at.trim().replaceAll(`${root}/`, '')})` : ''}`;
  });
  return [`${what} ${relative(root, file)}: ${test}`, ...lines].join('\n');
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  needModules();
  const words = process.argv.slice(2);
  const excluded = needWhatTestsUse(words);
  needBuild();
  const { passed, failed, skipped, well } = runTests(words, excluded);
  if (skipped > 0) console.log(`${skipped} skipped`);
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = well && failed === 0 ? 0 : 1;
}
