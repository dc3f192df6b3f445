import { Errors } from '@oclif/core';
import { GryphusError } from '../errors.ts';
import { didYouMean } from '../util/did-you-mean.ts';

/** The command as typed, and the names of its flags. */
export interface TypedCommand {
  readonly command: string;
  readonly flags: readonly string[];
}

/** Flags that users try, and their equivalents here. */
const OTHER_FLAGS: Readonly<Record<string, readonly string[]>> = {
  constraint: ['filter', 'where', 'state', 'status', 'states', 'match', 'select', 'grep', 'failed'],
  json: ['output-format', 'format=json', 'as-json'],
  limit: ['head', 'tail', 'max', 'n', 'count', 'last', 'first', 'top'],
  number: ['n', 'count', 'num'],
  all: ['everything', 'any'],
  allusers: ['everyone', 'all-users', 'user', 'global', 'u'],
  nobatch: ['each', 'jobs', 'one', 'expand', 'array', 'r'],
  long: ['full', 'verbose', 'details', 'v', 'ad', 'ads'],
  af: ['o', 'format', 'output', 'columns', 'fields', 'print'],
  watch: ['w', 'follow', 'f', 'interval', 'i', 'refresh', 'iterate', 'live', 'loop'],
  wide: ['ww', 'width', 'no-trunc', 'notrunc', 'wrap'],
  force: ['f', 'forcex', 'yes', 'y', 'now'],
  reason: ['message', 'm', 'comment', 'why', 'note'],
  follow: ['watch', 'live'],
  stderr: ['error', 'err'],
  timeout: ['t', 'seconds', 'wait', 'for', 'max'],
  wait: ['sync', 'w', 'block', 'blocking'],
  jobs: ['j', 'parallel', 'p', 'max-procs', 'np', 'workers', 'n', 'max-workers'],
  retries: ['retry', 'r', 'attempts'],
  cores: ['cpus', 'c', 'ncpus', 'cpus-per-task'],
  cpus: ['cores', 'c', 'ncpus', 'cpus-per-task', 'threads'],
  memory: ['mem', 'm', 'ram', 'mem-per-cpu'],
  walltime: ['time', 't', 'timeout', 'hours'],
  colsep: ['delimiter', 'd', 'sep', 'separator'],
  'keep-order': ['ordered', 'order', 'sorted'],
};

/** Rewords oclif's complaint, and suggests the flag that was probably meant. */
export function usageError(error: Errors.CLIError, { command, flags }: TypedCommand): GryphusError {
  const odd = 'flags' in error && Array.isArray(error.flags) ? String(error.flags[0]).replace(/^-+/, '') : '';
  const near = odd === '' ? undefined : nearFlag(odd.toLowerCase(), flags);
  return new GryphusError('usage', `${messageOf(error, command)}.`, {
    suggestions: [
      ...(near ? [`Did you mean --${near}?`] : []),
      command === '' ? 'See `gryphus --help`.' : `See \`gryphus ${command} --help\`.`,
    ],
  });
}

function nearFlag(odd: string, flags: readonly string[]): string | undefined {
  const same = flags.find((name) => OTHER_FLAGS[name]?.includes(odd));
  // A single letter resembles every other.
  if (same !== undefined || odd.length < 2) return same;
  const own = didYouMean(odd, flags) ?? flags.find((name) => beginsWith(name, odd));
  if (own !== undefined) return own;
  const others = flags.flatMap((name) => (OTHER_FLAGS[name] ?? []).map((word) => [word, name] as const));
  const near = didYouMean(
    odd,
    others.flatMap(([word]) => (word.length > 2 ? [word] : [])),
  );
  return others.find(([word]) => word === near)?.[1];
}

function beginsWith(name: string, odd: string): boolean {
  return odd.length > 2 && (name.startsWith(odd) || odd.startsWith(name) || name.split('-').includes(odd));
}

interface MissingArg {
  readonly name: string;
  readonly description?: string;
}

function messageOf(error: Errors.CLIError, command: string): string {
  // If a command takes no arguments, oclif reads an argument as part of the command's name.
  const longer = `command ${command.replaceAll(' ', ':')}:`;
  if (command !== '' && error.message.startsWith(longer) && error.message.endsWith(' not found'))
    return `Unexpected argument: ${error.message.slice(longer.length, -' not found'.length)}`;
  if (/^Missing \d+ required arg/.test(error.message) && 'args' in error && Array.isArray(error.args)) {
    const args = error.args as readonly MissingArg[];
    return args
      .map(({ name, description = '' }) => `${name.toUpperCase()} is missing: ${description.replace(/\.$/, '')}`)
      .join('; ');
  }
  const lines = error.message
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !/^(See more help|The following errors? occurred:)/.test(line));
  return lines
    .join('; ')
    .replaceAll(/Parsing (--[\w-]+) ?; ?Expected/g, '$1: expected')
    .replaceAll(/Missing required flag (?=\w)/g, 'Missing required flag --');
}
