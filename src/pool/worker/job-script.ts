import { join } from 'node:path';
import { AD_FILES } from './ad-files.ts';
import type { RunSpec } from '../wire/wire.ts';
import { shellQuote, shellWords } from '../../util/shell-quote.ts';
import { KEY_VARIABLE } from '../host/processes.ts';

export interface Placed {
  /** As the shell finds it from the directory that the job runs in. */
  readonly program: string;
  /** Absolute; `undefined`: the sandbox. */
  readonly cwd: string | undefined;
  /** Absolute; `undefined`: /dev/null. */
  readonly stdin: string | undefined;
  /** Absolute: the attempt's sandbox. */
  readonly scratch: string;
  /** The job's proxy. */
  readonly proxy?: string | undefined;
  /** The job's ad and its slot's are there. */
  readonly ads?: boolean;
  /** Its group's files by which it comes into it. */
  readonly doors?: readonly string[];
}

/** Lines by which the shell goes into a group, of which what it starts is then. Without, it is watched as others are. */
export function entering(doors: readonly string[] = []): string[] {
  return doors.map((door) => `{ echo 0 >${shellQuote(door)}; } 2>/dev/null || :`);
}

/**
 * The shell text that becomes the job: it runs in a subshell of the starter, where `$d` is the attempt's directory. Its
 * last step before the program makes `started`. `waiter`: the words that wait for it.
 */
export function jobScript(
  key: string,
  spec: Pick<RunSpec, 'args' | 'env' | 'joinStderr' | 'core'>,
  placed: Placed,
  waiter: readonly string[],
): string {
  const own = {
    ...spec.env,
    [KEY_VARIABLE]: key,
    _CONDOR_SCRATCH_DIR: placed.scratch,
    ...(placed.proxy === undefined ? {} : { X509_USER_PROXY: placed.proxy }),
    ...(placed.ads ? adVariables(placed.scratch) : {}),
    BATCH_SYSTEM: 'Gryphus',
  };
  const variables = Object.entries(own);
  const exports = variables.filter(([name]) => IDENTIFIER.test(name));
  const others = variables.filter(([name]) => !IDENTIFIER.test(name));
  const env = others.length === 0 ? [] : ['env', ...others.map(([name, value]) => `${name}=${value}`)];
  return [
    ...entering(placed.doors),
    `exec <${placed.stdin === undefined ? '/dev/null' : shellQuote(placed.stdin)} >"$d/stdout" || exit 216`,
    spec.joinStderr ? 'errors=' : 'errors=1',
    // All that can find no room is made before it counts as started.
    `if [ -n "$errors" ]; then : >"$d/stderr"; fi || exit 216`,
    `: >"$d/started" || exit 216`,
    `exec 9<>"$d/exit" || exit 216`,
    `if [ -n "$errors" ]; then exec 2>"$d/stderr"; else exec 2>&1; fi`,
    `cd ${placed.cwd === undefined ? '"$d/work"' : shellQuote(placed.cwd)} || exit 216`,
    'umask 022',
    ...(spec.core === undefined ? [] : [`ulimit -S -c ${spec.core} 2>/dev/null || :`]),
    ...exports.map(([name, value]) => `export ${name}=${shellQuote(value)}`),
    'unset -v errors d status',
    `exec ${shellWords([...waiter, ...env, placed.program, ...spec.args])}`,
    '',
  ].join('\n');
}

/** `scratch`: the sandbox, as the program sees it. */
export function adVariables(scratch: string): Readonly<Record<string, string>> {
  return {
    _CONDOR_JOB_AD: join(scratch, AD_FILES.job),
    _CONDOR_MACHINE_AD: join(scratch, AD_FILES.machine),
  };
}

const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]*$/;
