import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, resolve } from 'node:path';
import type { Paths } from '../config/paths.ts';
import { loadSettings } from '../config/settings.ts';
import { loadSite, POOL_SITE, type SiteRecord } from '../config/sites.ts';
import { GryphusError } from '../errors.ts';
import { quoted } from '../job/values.ts';
import type { SubmitRequest } from '../enqueue/types.ts';
import { printArgsV2, printEnvV2 } from '../submit/api.ts';
import { oneLine } from '../util/plain-text.ts';

/** One command as a job with a directory of its own. */
export interface OneJob {
  /** The program and its arguments; each arrives unchanged. */
  readonly command: readonly string[];
  /** Default: the pool. */
  readonly site?: Pick<SiteRecord, 'name' | 'batch'>;
  /** The base of relative names, and where results go; default: the current directory. */
  readonly cwd?: string;
  readonly cpus?: number;
  /** As in `request_memory`: MB, or a number with its unit. */
  readonly memory?: string;
  readonly gpus?: number;
  /** The longest run, in seconds. */
  readonly seconds?: number;
  /** Of the site's batch system. */
  readonly queue?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: readonly string[];
  /** Files that come back; absent: all new ones. */
  readonly output?: readonly string[];
  readonly stdin?: string;
  /** Where the streams go; `{job}` is the job's id. */
  readonly stdout?: string;
  readonly stderr?: string;
  readonly batchName?: string;
}

/** Programs that a site has under their own names, and those that are sent there. */
export type Program = { readonly there: string } | { readonly here: string };

/**
 * As in a shell: a name with a slash is a path, any other is looked for in PATH. A relative path is a file here, which
 * is sent; an absolute one is the site's own. A name is the site's command of that name, unless PATH has none here and
 * a file in `cwd` is called so. Throws 'input-missing'.
 */
export function programOf(command: string, cwd: string, path = process.env['PATH'] ?? ''): Program {
  if (command.startsWith('/')) return { there: command };
  const file = resolve(cwd, command);
  if (command.includes('/')) {
    if (isFile(file)) return { here: file };
    throw new GryphusError('input-missing', `There is no file ${JSON.stringify(file)} to run.`, {
      suggestions: [
        'A path that begins with / is taken as the site has it; a name without a slash is looked for there.',
      ],
    });
  }
  const known = path.split(delimiter).some((dir) => dir !== '' && isExecutable(resolve(cwd, dir, command)));
  return !known && isFile(file) ? { here: file } : { there: command };
}

/** False also in a directory of PATH that is closed to us, as after `su`. */
function isFile(file: string): boolean {
  try {
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

function isExecutable(file: string): boolean {
  if (!isFile(file)) return false;
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** The site of this name, or where jobs that name none go. Rejects with 'site-unknown'. */
export async function siteNamed(paths: Paths, name?: string): Promise<SiteRecord> {
  const wanted = name ?? (await loadSettings(paths))['submit.default_site'];
  return wanted === POOL_SITE.name ? POOL_SITE : loadSite(paths, wanted);
}

/** The description of a job. Throws 'usage' or 'input-missing'. */
export function describeJob(job: OneJob): SubmitRequest {
  const cwd = resolve(job.cwd ?? '.');
  const [command = '', ...given] = job.command;
  if (command === '') throw new GryphusError('usage', 'There is no command to run.');
  const nul = job.command.find((word) => word.includes('\0'));
  if (nul !== undefined) throw new GryphusError('usage', `An argument has a NUL byte: ${oneLine(nul)}.`);
  const variable = Object.entries(job.env ?? {}).find((both) => both.join('').includes('\0'));
  if (variable) throw new GryphusError('usage', `The variable ${oneLine(variable[0])} has a NUL byte.`);
  const program = programOf(command, cwd);
  const [executable, args] = start(program, given);
  const site = job.site ?? POOL_SITE;
  const limit = job.seconds;
  // What the system there limits is limited by it; elsewhere the agent does it.
  const ownLimit = site.batch === 'pool' || site.batch === 'fork';
  const lines = [
    ...destination(site),
    `executable = ${plain(executable)}`,
    `transfer_executable = ${'here' in program}`,
    'should_transfer_files = YES',
    ...value('request_cpus', job.cpus),
    ...value('request_memory', job.memory),
    ...value('request_gpus', job.gpus),
    ...(limit === undefined ? [] : value(ownLimit ? 'allowed_execute_duration' : 'batch_runtime', limit)),
    ...value('batch_queue', job.queue),
    ...list('transfer_input_files', job.input),
    ...list('transfer_output_files', job.output),
    ...value('input', job.stdin),
    ...stream('output', job.stdout),
    ...stream('error', job.stderr),
    'queue',
  ];
  const batchName = job.batchName ?? oneLine([command, ...given].join(' ')).slice(0, 60);
  const attributes = {
    Arguments: quoted(printArgsV2(args)),
    ...(job.env === undefined ? {} : { Environment: quoted(printEnvV2(new Map(Object.entries(job.env)))) }),
  };
  return { text: `${lines.join('\n')}\n`, cwd, batchName, warnUnused: false, attributes };
}

/** The executable and its arguments; a name is found by `env` in the PATH there, or by a shell if `env` would set it. */
function start(program: Program, args: readonly string[]): readonly [string, readonly string[]] {
  if ('here' in program) return [program.here, args];
  const { there } = program;
  if (there.includes('/')) return [there, args];
  return there.includes('=') || there.startsWith('-')
    ? ['/bin/sh', ['-c', 'exec "$0" "$@"', there, ...args]]
    : ['/usr/bin/env', [there, ...args]];
}

function destination({ name, batch }: Pick<SiteRecord, 'name' | 'batch'>): readonly string[] {
  if (batch === 'pool') return ['universe = vanilla', '+WantGlidein = true'];
  return ['universe = grid', `grid_resource = ${batch === 'gt2' ? 'gt2' : `batch ${batch}`} ${name}`];
}

/** The value of a command of the submit language, in which `$` begins a macro. */
function plain(text: string): string {
  if (/[\n\r]/.test(text)) throw new GryphusError('usage', `A file name has a line end: ${oneLine(text)}.`);
  return text.replaceAll('$', '$(DOLLAR)');
}

function value(command: string, given: string | number | undefined): readonly string[] {
  return given === undefined ? [] : [`${command} = ${plain(String(given))}`];
}

function stream(command: string, name: string | undefined): readonly string[] {
  return value(command, name).map((line) => line.replaceAll('{job}', '$(Cluster).$(Process)'));
}

function list(command: string, names: readonly string[] | undefined): readonly string[] {
  if (names === undefined || names.length === 0) return [];
  const odd = names.find((name) => name.includes(','));
  if (odd === undefined) return [`${command} = ${plain(names.join(', '))}`];
  throw new GryphusError('usage', `A file to transfer cannot have a comma in its name: ${JSON.stringify(odd)}.`);
}
