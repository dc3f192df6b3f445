import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join, resolve } from 'node:path';
import type { NodeJobEnd } from '../../../src/dag/engine/messages.ts';
import type { NodeSubmit, ScriptRun } from '../../../src/dag/manager/world.ts';
import type { SimBehaviour, SimJob, SimScript, SimSubmit } from './sim-world.ts';
import { argumentWords, describe } from './submit-text.ts';

/**
 * Really runs the programs of nodes and scripts, but replaces the shell's `sleep` by one that only records its
 * duration: the simulated clock does the waiting.
 */
export class ShellBehaviour implements SimBehaviour {
  private readonly root: string;
  private readonly bin: string;
  private readonly slept: string;
  /** Runs the DAG manager of a SUBDAG to completion; returns its exit code. */
  runSubdag: (request: NodeSubmit) => number = () => 1;

  constructor(root: string, bin: string) {
    this.root = root;
    this.bin = bin;
    this.slept = join(bin, 'slept');
    writeFileSync(join(bin, 'sleep'), `#!/bin/sh\necho "$1" >> '${this.slept}'\n`);
    chmodSync(join(bin, 'sleep'), 0o755);
  }

  submit(request: NodeSubmit): SimSubmit {
    const { description } = request;
    const cwd = resolve(this.root, request.directory);
    if (!existsSync(cwd)) return { failed: `Could not change to node directory ${request.directory}`, again: true };
    if (description.is === 'dag') {
      return { procs: [{ startAfter: 1000, run: { duration: 1000, end: { code: this.runSubdag(request) } } }] };
    }
    const text = description.is === 'text' ? description.text : read(join(cwd, description.file));
    if (text === undefined)
      return {
        failed: `can't open file ${join(cwd, description.is === 'file' ? description.file : '')}`,
        again: false,
      };
    const described = describe(text, request.before, request.after);
    if (request.oneJob && described.count > 1) return { failed: 'Submit generated multiple job procs', again: false };
    const procs: SimJob[] = [];
    for (let proc = 0; proc < described.count; proc++) {
      const value = (name: string): string => described.expand(described.values.get(name) ?? '', proc);
      const words = argumentWords(value('arguments'));
      if (words === undefined) return { failed: 'Found illegal unescaped double-quote', again: false };
      if (value('hold') === 'true') procs.push({ startAfter: 1000, run: undefined });
      else {
        const { end, seconds } = this.execute(resolve(cwd, value('executable')), words, cwd);
        const held = described.values.has('on_exit_hold') && 'code' in end && end.code !== 0;
        procs.push({
          startAfter: 1000,
          run: { duration: 1000 * seconds, end },
          ...(held ? { heldAtEnd: 'bad exit' } : {}),
        });
      }
    }
    return { procs };
  }

  script(run: ScriptRun): SimScript {
    const cwd = resolve(this.root, run.directory);
    const program = resolve(cwd, run.argv[0] ?? '');
    if (!existsSync(program)) return { duration: 0, end: { code: 1 }, notStarted: `Cannot access ${program}` };
    const { end, seconds } = this.execute(program, run.argv.slice(1), cwd);
    return { duration: 1000 * seconds + 100, end };
  }

  private execute(
    program: string,
    args: readonly string[],
    cwd: string,
  ): { readonly end: NodeJobEnd; readonly seconds: number } {
    writeFileSync(this.slept, '');
    const ran = spawnSync(program, args, {
      cwd,
      env: { PATH: `${this.bin}:/usr/bin:/bin`, _CONDOR_JOB_AD: '/dev/null' },
      stdio: 'ignore',
    });
    const seconds = (read(this.slept) ?? '').split('\n').reduce((sum, line) => sum + Number(line), 0);
    const end = ran.signal === null ? { code: ran.status ?? 1 } : { signal: constants.signals[ran.signal] };
    return { end, seconds };
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
