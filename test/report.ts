import { execFileSync } from 'node:child_process';
import { appendFileSync, readFileSync } from 'node:fs';
import type { Reporter, SerializedError, TestCase, TestModule, TestSuite } from 'vitest/node';
import { SLOW } from './slow.ts';

/** A file without any event for so long is named, with all processes; later it is ended. Milliseconds. */
const QUIET_MS = 6 * 60_000;
const HUNG_MS = 11 * 60_000;

interface Running {
  since: number;
  doing: string;
  named?: true;
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
  readonly #over = new Set<string>();
  readonly #ended = new Set<string>();
  #watch: NodeJS.Timeout | undefined;

  onTestRunStart(): void {
    this.#watch = setInterval(() => this.#nameQuiet(), 60_000);
  }

  onTestRunEnd(_: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    clearInterval(this.#watch);
    // That of a process that was ended here is told by its file, which does not end.
    for (const error of unhandled) {
      const ours = this.#ended.size > 0 && text(error).includes('[vitest-pool]');
      if (!ours) this.#write({ file: 'outside of files', state: 'failed', messages: [text(error)] });
    }
  }

  onTestModuleQueued(module: TestModule): void {
    this.#heard(module, 'loading');
    this.#write({ file: module.moduleId, state: 'begun' });
  }

  onTestModuleEnd(module: TestModule): void {
    this.#running.delete(module.moduleId);
    this.#over.add(module.moduleId);
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
    // A test's result may be told after the end of its file.
    if (this.#over.has(module.moduleId)) return;
    this.#running.set(module.moduleId, { since: Date.now(), doing });
  }

  #nameQuiet(): void {
    const silent = [...this.#running].map(([file, running]) => ({ file, running, ms: Date.now() - running.since }));
    for (const { file, running, ms } of silent) {
      if (ms > QUIET_MS && !running.named) {
        running.named = true;
        console.log(`nothing from ${file} for ${Math.round(ms / 60_000)} minutes: ${running.doing}\n${allProcesses()}`);
      }
      if (ms > HUNG_MS && !SLOW) this.#end(file);
    }
  }

  /** Kills the process of a file, which began.ts has written down. */
  #end(file: string): void {
    const written = this.#path === undefined ? '' : readFileSync(this.#path, 'utf8');
    const pid = new RegExp(`"file":${JSON.stringify(file).replaceAll('.', '\\.')},"pid":(\\d+)`).exec(written)?.[1];
    if (pid === undefined || this.#ended.has(file)) return;
    this.#ended.add(file);
    console.log(`${file} is ended: process ${pid}`);
    try {
      process.kill(Number(pid), 'SIGKILL');
    } catch (thrown) {
      console.log(String(thrown));
    }
  }

  #write(record: object): void {
    if (this.#path !== undefined) appendFileSync(this.#path, `${JSON.stringify(record)}\n`);
  }
}

function allProcesses(): string {
  const env = { ...process.env, COLUMNS: '200' };
  return execFileSync('ps', ['-eo', 'pid,ppid,etimes,stat,wchan:20,args', '--forest'], { encoding: 'utf8', env });
}

function text(error: SerializedError): string {
  return error.stack === undefined ? error.message : `${error.message}\n${error.stack}`;
}
