// `npm test`: installs what the tests need, builds, runs all of them, and ends with the line `N passed, N failed`.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { needBuild, needWhatTestsUse, needModules, root } from './setup.mjs';

/** A run that takes longer has failed, milliseconds. */
const LONGEST = 70 * 60_000;

/**
 * Runs vitest with these additional arguments, and names what failed; returns counts of tests, where a file that
 * cannot be loaded counts as one failure.
 */
export function runTests(words, excluded) {
  const dir = mkdtempSync(join(tmpdir(), 'gryphus-test-'));
  const report = join(dir, 'report.json');
  try {
    const excludes = excluded.flatMap((glob) => ['--exclude', glob]);
    const args = ['run', '--reporter=default', '--reporter=json', `--outputFile.json=${report}`, ...excludes, ...words];
    const { status, signal, error } = spawnSync(
      process.execPath,
      [join(root, 'node_modules/vitest/vitest.mjs'), ...args],
      {
        cwd: root,
        stdio: ['ignore', 'inherit', 'inherit'],
        timeout: LONGEST,
        // A separate session if not at a terminal with Ctrl-C: a signal to a whole group then does not end the counting
        // process.
        detached: Boolean(process.env.CI),
      },
    );
    if (signal) console.error(`gryphus: the tests were ended by ${signal}`);
    if (error) console.error(`gryphus: the tests were ended: ${error.message}`);
    const { failures, ...counts } = read(report);
    for (const one of failures) console.log(one);
    return { ...counts, status };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function read(report) {
  let found;
  try {
    found = JSON.parse(readFileSync(report, 'utf8'));
  } catch {
    return { passed: 0, failed: 1, skipped: 0, failures: ['The tests left no report.'] };
  }
  const broken = found.testResults.filter((file) => file.status === 'failed' && file.assertionResults.length === 0);
  const failures = [
    ...broken.map((file) => failure(file.name, 'could not be loaded', [file.message])),
    ...found.testResults.flatMap((file) =>
      file.assertionResults
        .filter((test) => test.status === 'failed')
        .map((test) => failure(file.name, test.fullName, test.failureMessages)),
    ),
  ];
  return {
    passed: found.numPassedTests,
    failed: found.numFailedTests + broken.length,
    skipped: found.numPendingTests,
    failures,
  };
}

/** Where and why a test failed, a line for each try: the long report above may be cut by whoever keeps it. */
function failure(file, test, messages) {
  const lines = messages.map((message) => {
    const at = message.split('\n').find((line) => line.includes(`${root}/test/`));
    return `    ${message.split('\n', 1)[0].slice(0, 200)}${at ? ` (${at.trim().replaceAll(`${root}/`, '')})` : ''}`;
  });
  return [`FAILED ${relative(root, file)}: ${test}`, ...lines].join('\n');
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  needModules();
  const words = process.argv.slice(2);
  const excluded = needWhatTestsUse(words);
  needBuild();
  const { passed, failed, skipped, status } = runTests(words, excluded);
  if (skipped > 0) console.log(`${skipped} skipped`);
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = status === 0 && failed === 0 ? 0 : 1;
}
