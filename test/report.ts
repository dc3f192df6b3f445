import { execFileSync } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import type { Reporter, SerializedError, TestCase, TestModule, TestSuite } from 'vitest/node';

/** A file without any event for so long is named, with its processes, milliseconds. */
const QUIET_MS = 6 * 60_000;

interface Running {
  since: number;
  doing: string;
}

/**
 * Writes each result to the file that `GRYPHUS_TEST_REPORT` names as soon as it is there, a JSON object a line, so that
 * a run that is ended has told what it knows: `{"file","test","state","messages","retries"}`, for a file without `test`:
 * `begun`, `ended`, or `failed` outside of tests. Names the files that nothing is heard of for minutes: a synchronous call that never returns
 * is beyond the time limits of vitest.
 */
export default class Report implements Reporter {
  readonly #path = process.env['GRYPHUS_TEST_REPORT'];
  readonly #running = new Map<string, Running>();
  #watch: NodeJS.Timeout | undefined;

  onTestRunStart(): void {
    this.#watch = setInterval(() => this.#nameQuiet(), 60_000);
  }

  onTestRunEnd(): void {
    clearInterval(this.#watch);
  }

  onTestModuleQueued(module: TestModule): void {
    this.#heard(module, 'loading');
    this.#write({ file: module.moduleId, state: 'begun' });
  }

  onTestModuleEnd(module: TestModule): void {
    this.#running.delete(module.moduleId);
    this.#write({ file: module.moduleId, state: 'ended' });
    this.#failedOutside(module, module.errors());
  }

  onTestSuiteReady(suite: TestSuite): void {
    this.#heard(suite.module, suite.fullName);
  }

  onTestSuiteResult(suite: TestSuite): void {
    this.#failedOutside(suite.module, suite.errors());
  }

  onTestCaseReady(test: TestCase): void {
    this.#heard(test.module, test.fullName);
  }

  onTestCaseResult(test: TestCase): void {
    this.#heard(test.module, `after ${test.fullName}`);
    const { state, errors } = test.result();
    this.#write({
      file: test.module.moduleId,
      test: test.fullName,
      state,
      messages: (errors ?? []).map(text),
      retries: test.diagnostic()?.retryCount ?? 0,
    });
  }

  #failedOutside(module: TestModule, errors: readonly SerializedError[]): void {
    if (errors.length > 0) this.#write({ file: module.moduleId, state: 'failed', messages: errors.map(text) });
  }

  #heard(module: TestModule, doing: string): void {
    this.#running.set(module.moduleId, { since: Date.now(), doing });
  }

  #nameQuiet(): void {
    const quiet = [...this.#running].filter(([, { since }]) => Date.now() - since > QUIET_MS);
    if (quiet.length === 0) return;
    for (const [file, { since, doing }] of quiet) {
      console.log(`nothing from ${file} for ${Math.round((Date.now() - since) / 60_000)} minutes: ${doing}`);
    }
    console.log(
      execFileSync('ps', ['-eo', 'pid,ppid,etimes,stat,wchan:20,args', '--forest'], {
        encoding: 'utf8',
        env: { ...process.env, COLUMNS: '200' },
      }),
    );
  }

  #write(record: object): void {
    if (this.#path !== undefined) appendFileSync(this.#path, `${JSON.stringify(record)}\n`);
  }
}

function text(error: SerializedError): string {
  return error.stack === undefined ? error.message : `${error.message}\n${error.stack}`;
}
