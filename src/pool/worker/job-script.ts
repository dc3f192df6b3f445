import { pathOrStart } from '../../job/start-directory.ts';
import { join } from 'node:path';
import { CHIRP_CONFIG } from '../../site/chirp.ts';
import { AD_FILES } from './ad-files.ts';
import type { RunSpec } from '../wire/wire.ts';
import { shellQuote, shellWords } from '../../util/shell-quote.ts';
import { gpuVariables } from './gpus.ts';
import { KEY_VARIABLE } from '../host/processes.ts';
import { waiterIn } from './waiter/waiter.ts';

export interface PlacedJob {
  /** The program's path, as seen by the shell in the job's working directory. */
  readonly program: string;
  /** Absolute; `undefined` for the sandbox. */
  readonly cwd: string | undefined;
  /** Absolute; `undefined` for /dev/null. */
  readonly stdin: string | undefined;
  /** What is started instead of the program and its arguments. */
  readonly command?: readonly string[];
  /** The attempt's sandbox, as an absolute path. */
  readonly scratch: string;
  /** The path of the job's proxy. */
  readonly proxy?: string | undefined;
  /** Whether the ad files of the job and its slot exist. */
  readonly ads?: boolean;
  /** As the pool names it: `slot1_1@host`. */
  readonly slot?: string | undefined;
  /** Whether it has a proxy for requests to its home. */
  readonly chirp?: boolean;
  /** The submit directory at home, if the job reaches it (`want_remote_io`). */
  readonly submitDir?: string;
  /** The files through which a process enters the job's cgroup. */
  readonly doors?: readonly string[];
  /** The words before a command that let it run under the job's account, and the variables that name it. */
  readonly become?: readonly string[];
  /** Of a stranger: the words before what waits for the program, and the directory of its copy of that. */
  readonly enter?: readonly string[];
  readonly waiter?: string;
  readonly identity?: Readonly<Record<string, string>>;
  /** Its GPUs; `undefined` on a machine without. */
  readonly gpus?: readonly string[] | undefined;
  /** Of a node of a parallel job: how it starts commands at the others. */
  readonly variables?: Readonly<Record<string, string>> | undefined;
}

/**
 * Shell lines that move the shell, and so everything it starts, into a cgroup. If that fails, the run is watched
 * without one.
 */
export function entering(doors: readonly string[] = []): string[] {
  return doors.map((door) => `{ echo 0 >${shellQuote(door)}; } 2>/dev/null || :`);
}

/**
 * The shell text that becomes the job. It runs in a subshell of the starter, where `$d` is the attempt's directory.
 * Everything that can fail for lack of disk space precedes the creation of `started`. `waiter`: the command that runs
 * and waits for the program.
 */
export function jobScript(
  key: string,
  spec: Pick<RunSpec, 'args' | 'env' | 'joinStderr' | 'core'>,
  placed: PlacedJob,
  waiter: readonly string[],
): string {
  const { enter = [], become = [], identity = {} } = placed;
  const waits = placed.waiter === undefined ? waiter : waiterIn(placed.waiter, waiter);
  const own = {
    ...identity,
    ...spec.env,
    ...variablesAt(key, placed),
  };
  const variables = Object.entries(own);
  const isOpen = (name: string) => IDENTIFIER.test(name) && !(become.length > 0 && LOADED.test(name));
  const exports = variables.filter(([name]) => isOpen(name));
  const env = envWords(variables.filter(([name]) => !isOpen(name)));
  return [
    ...entering(placed.doors),
    `exec <${placed.stdin === undefined ? '/dev/null' : shellQuote(placed.stdin)} >"$d/stdout" || exit 216`,
    spec.joinStderr ? 'errors=' : 'errors=1',
    // Create everything that may fail on a full disk before it counts as started.
    `if [ -n "$errors" ]; then : >"$d/stderr"; fi || exit 216`,
    `: >"$d/started" || exit 216`,
    `exec 9<>"$d/exit" || exit 216`,
    `if [ -n "$errors" ]; then exec 2>"$d/stderr"; else exec 2>&1; fi`,
    `cd ${placed.cwd === undefined ? '"$d/work"' : shellQuote(placed.cwd)} || exit 216`,
    'umask 022',
    ...(spec.core === undefined ? [] : [`ulimit -S -c ${spec.core} 2>/dev/null || :`]),
    ...exports.map(([name, value]) => `export ${name}=${valueFor(value, placed)}`),
    'unset -v errors d status',
    `exec ${shellWords([...enter, ...waits, ...become, ...env, ...(placed.command ?? [placed.program, ...spec.args])])}`,
    '',
  ].join('\n');
}

/** The variables that the worker adds to a job's own. */
export function variablesAt(
  key: string,
  placed: Pick<PlacedJob, 'scratch' | 'proxy' | 'ads' | 'slot' | 'chirp' | 'submitDir' | 'variables' | 'gpus'>,
): Readonly<Record<string, string>> {
  return {
    [KEY_VARIABLE]: key,
    _CONDOR_SCRATCH_DIR: placed.scratch,
    ...(placed.proxy === undefined ? {} : { X509_USER_PROXY: placed.proxy }),
    ...(placed.ads ? adVariables(placed.scratch) : {}),
    ...slotVariable(placed.slot),
    ...(placed.chirp ? chirpVariable(placed.scratch) : {}),
    ...(placed.submitDir === undefined ? {} : { GRYPHUS_SUBMIT_DIR: placed.submitDir }),
    ...placed.variables,
    ...gpuVariables(placed.gpus),
    BATCH_SYSTEM: 'Gryphus',
  };
}

function envWords(variables: readonly (readonly [name: string, value: string])[]): readonly string[] {
  return variables.length === 0 ? [] : ['env', ...variables.map(([name, value]) => `${name}=${value}`)];
}

/** A job's variables that the command may have which changes to its account, and the words behind that command for the others. */
export function beforeAndAfter(variables: Readonly<Record<string, string>>): {
  readonly before: Readonly<Record<string, string>>;
  readonly after: readonly string[];
} {
  const all = Object.entries(variables);
  return {
    before: Object.fromEntries(all.filter(([name]) => !LOADED.test(name))),
    after: envWords(all.filter(([name]) => LOADED.test(name))),
  };
}

function valueFor(value: string, { cwd }: PlacedJob): string {
  const path = pathOrStart(value);
  if (path === undefined) return shellQuote(value);
  return cwd === undefined ? '"$PWD"' : shellQuote(path);
}

/** `scratch`: the sandbox, as seen by the program. */
export function adVariables(scratch: string): Readonly<Record<string, string>> {
  return {
    _CONDOR_JOB_AD: join(scratch, AD_FILES.job),
    _CONDOR_MACHINE_AD: join(scratch, AD_FILES.machine),
  };
}

/** HTCondor's `slot1_1`, without the machine. */
export function slotVariable(slot: string | undefined): Readonly<Record<string, string>> {
  return slot === undefined ? {} : { _CONDOR_SLOT: slot.replace(/@.*$/s, '') };
}

/** As `adVariables`, for the file that says where the job's proxy is. */
export function chirpVariable(scratch: string): Readonly<Record<string, string>> {
  return { _CONDOR_CHIRP_CONFIG: join(scratch, CHIRP_CONFIG) };
}

/**
 * They have effect in what runs before the account is the job's, which must not get them: `unshare` looks for newuidmap along
 * PATH, for example.
 */
const LOADED =
  /^(PATH$|FPATH$|CDPATH$|LD_|GLIBC_|GCONV_PATH$|LOCPATH$|NLSPATH$|NODE_|BASH|SHELLOPTS$|PS4$|ENV$|IFS$|PERL|PYTHON|MALLOC_|LIBMOUNT_|LIBBLKID_)/;
const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]*$/;
