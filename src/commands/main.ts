import { dirname, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Config, Errors } from '@oclif/core';
import { GryphusError } from '../errors.ts';
import { didYouMean } from '../util/did-you-mean.ts';
import { ownPackage } from '../util/own-package.ts';
import { WARNING } from '../util/warn.ts';
import { condorHabits, type Flagged } from './argv.ts';
import { allCommands, CHOICE, type CommandId, COMMANDS } from './registry.ts';
import { hasColours } from './show/colour.ts';
import { errorText } from './show/error.ts';
import { commandFor, commandLike, synonymFor } from './other-words.ts';
import { Elsewhere, isServed } from '../command-server/served.ts';
import { ownStreams } from './streams.ts';
import { type TypedCommand, usageError } from './usage-error.ts';

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, '../..');

/** Runs the command line, from its words to the exit status. */
export async function main(words: readonly string[]): Promise<void> {
  if (words[0] === 'compat' && words[1] === 'serve')
    return (await import('../command-server/command-server.ts')).serveCommands(run);
  ownStreams();
  sayWarnings();
  // Nothing is left to be done then; freeing all memory piece by piece would take as long as a round trip to the queue.
  process.once('beforeExit', () => process.exit());
  await run(words);
  if (isServed(words)) await (await import('../command-server/called-often.ts')).startIfOften();
}

function sayWarnings(): void {
  // In the place of Node's own listener, whose lines name the process and an option of Node.
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => {
    process.stderr.write(`gryphus: ${name === WARNING ? message : `${name}: ${message}`}\n`);
  });
}

/** A command that only the caller's own process can run throws Elsewhere in the command server. */
async function run(words: readonly string[]): Promise<void> {
  let spoken: TypedCommand = { command: '', flags: [] };
  try {
    // What `compat install` writes; their options are not those of this command line.
    const [first, second, command = '', ...rest] = words;
    const speaks = first === 'compat' && second === 'speak';
    const own = speaks ? (await import('./compat/run.ts')).ownWords(command, rest) : words;
    if (own === undefined) return await (await import('./compat/run.ts')).speak(command, rest);
    const id = namedBy(own);
    const chosen = id && (await COMMANDS[id]());
    if (id) spoken = typed(id, chosen);
    const argv = condorHabits(own, id && chosen ? { [id]: chosen } : {});
    checkCommand(argv);
    if (argv[0] === '--version') await version();
    else if (chosen === undefined || asksHelp(argv)) await help(argv);
    else await new chosen(argv.slice(id?.split(':').length), PARSES as Config).run();
  } catch (error) {
    if (error instanceof Elsewhere) throw error;
    report(error, spoken);
  }
}

/** What a command needs to parse its words: oclif's whole configuration takes longer to load than most commands do. */
const PARSES: Pick<Config, 'bin' | 'runHook'> = {
  bin: 'gryphus',
  runHook: async () => ({ successes: [], failures: [] }),
};

/** The command that words name, or ask help for. */
function namedBy(words: readonly string[]): CommandId | undefined {
  const from = words[0] === 'help' ? 1 : 0;
  const [one = '', two = ''] = words.slice(from);
  return [`${one}:${two}`, one].find(isCommand);
}

function isCommand(id: string): id is CommandId {
  return Object.hasOwn(COMMANDS, id);
}

function asksHelp(argv: readonly string[]): boolean {
  const end = argv.indexOf('--');
  return argv.slice(0, end < 0 ? undefined : end).includes('--help');
}

/** Help names the other commands, too. */
async function help(argv: string[]): Promise<void> {
  const { GryphusHelp } = await import('./help.ts');
  Object.assign(CHOICE, await allCommands());
  await new GryphusHelp(await load(), { flagSortOrder: 'none' }).showHelp(argv);
}

async function version(): Promise<void> {
  process.stdout.write(`${(await load()).userAgent}\n`);
}

async function load(): Promise<Config> {
  const { version, description } = ownPackage(root);
  const target = `./${relative(root, resolve(here, 'registry.js'))}`;
  const pjson = {
    name: 'gryphus',
    version,
    description,
    oclif: {
      bin: 'gryphus',
      commands: { strategy: 'explicit' as const, target, identifier: 'CHOICE' },
      topicSeparator: ' ' as const,
      topics: {
        dag: { description: 'Workflows: DAG files.' },
        site: { description: 'Places that run jobs.' },
        glidein: { description: 'Workers of your own, sent to sites as jobs.' },
        cred: { description: 'Credentials: what sites accept, and until when.' },
        alarm: { description: 'Alarms: what needs your attention.' },
        classad: { description: 'The ClassAd language.' },
        pool: { description: 'This machine in the pool: on, off, and when its owner is away.' },
        flock: { description: 'Other pools: machines lent and borrowed by agreement.' },
        compat: { description: 'Commands of other systems.' },
      },
    },
  };
  return Config.load({ root, pjson });
}

/** Reports an unknown command clearly before any other check. */
function checkCommand(argv: readonly string[]): void {
  const known = Object.keys(COMMANDS);
  const first = argv.find((word) => !word.startsWith('-'));
  if (argv[0]?.startsWith('-') && !STANDS_ALONE.has(argv[0]))
    throw new GryphusError('usage', `${argv[0]} is not an option of gryphus; a command comes first.`, {
      suggestions: ['See `gryphus --help`.'],
    });
  if (first === undefined || argv[0]?.startsWith('-')) return;
  const topics = new Set(known.map((id) => id.split(':')[0] ?? id));
  if (!topics.has(first)) throw unknown(first, commandFor(first), [...topics]);
  const second = argv[argv.indexOf(first) + 1];
  if (known.includes(first) || second === undefined || second.startsWith('-')) return;
  const inTopic = known.filter((id) => id.startsWith(`${first}:`)).map((id) => id.slice(first.length + 1));
  if (inTopic.includes(second)) return;
  const same = synonymFor(second, inTopic);
  throw unknown(
    `${first} ${second}`,
    same && `gryphus ${first} ${same}`,
    inTopic.map((id) => `${first} ${id}`),
  );
}

/** Options without a command. */
const STANDS_ALONE: ReadonlySet<string> = new Set(['--help', '--version']);

function typed(id: string, { flags = {} }: Flagged = {}): TypedCommand {
  return {
    command: id.replace(':', ' '),
    flags: Object.entries(flags).flatMap(([name, { aliases = [] }]) => [name, ...aliases]),
  };
}

/** `instead`: its name here, if it is a known name from elsewhere. */
function unknown(command: string, instead: string | undefined, known: readonly string[]): GryphusError {
  const near = didYouMean(command, known) ?? known.find((one) => command.length > 1 && one.startsWith(command));
  const like = command.includes(' ') ? undefined : commandLike(command);
  const meant = instead ?? (near ? `gryphus ${near}` : like);
  const topic = command.includes(' ') ? ` ${command.split(' ')[0]}` : '';
  return new GryphusError('usage', `There is no command '${command}'.`, {
    suggestions: [...(meant ? [`Did you mean '${meant}'?`] : []), `See \`gryphus${topic} --help\`.`],
  });
}

function report(error: unknown, spoken: TypedCommand): void {
  if (error instanceof Errors.ExitError) {
    process.exitCode = error.oclif.exit ?? 1;
    return;
  }
  const known = error instanceof Errors.CLIError ? usageError(error, spoken) : error;
  process.stderr.write(errorText(known, process.env['GRYPHUS_DEBUG'] !== undefined, hasColours(process.stderr)));
  process.exitCode = known instanceof GryphusError ? known.exitCode : 70;
}
