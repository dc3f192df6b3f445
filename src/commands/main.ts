import { dirname, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Config, Errors, run } from '@oclif/core';
import { GryphusError } from '../errors.ts';
import { didYouMean } from '../util/did-you-mean.ts';
import { ownPackage } from '../util/own-package.ts';
import { WARNING } from '../util/warn.ts';
import { condorHabits, type Flagged } from './argv.ts';
import { hasColours } from './show/colour.ts';
import { errorText } from './show/error.ts';
import { commandFor, synonymFor } from './other-words.ts';
import { ownStreams } from './streams.ts';
import { type TypedCommand, usageError } from './usage-error.ts';

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, '../..');

/** Runs the command line, from its words to the exit status. */
export async function main(words: readonly string[]): Promise<void> {
  ownStreams();
  // In the place of Node's own listener, whose lines name the process and an option of Node.
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => {
    process.stderr.write(`gryphus: ${name === WARNING ? message : `${name}: ${message}`}\n`);
  });
  const { CHOICE, COMMANDS } = await import('./registry.ts');
  try {
    // What `compat install` writes; their options are not those of this command line.
    const [first, second, command = '', ...rest] = words;
    const speaks = first === 'compat' && second === 'speak';
    const own = speaks ? await (await import('./compat/run.ts')).ownWords(command, rest) : words;
    if (own === undefined) return await (await import('./compat/run.ts')).speak(command, rest);
    const argv = condorHabits(own, COMMANDS);
    checkCommand(argv, Object.keys(COMMANDS));
    for (const id of chosenBy(argv, COMMANDS)) CHOICE[id] = COMMANDS[id];
    await run(argv, await load());
  } catch (error) {
    report(error, commandOf(words, COMMANDS));
  }
}

/** The commands that oclif needs to know. */
function chosenBy<Id extends string>(argv: readonly string[], commands: Readonly<Record<Id, unknown>>): readonly Id[] {
  const all = Object.keys(commands) as Id[];
  if (argv.some((word) => CONCERNS_ALL.has(word))) return all;
  const [one = '', two = ''] = argv;
  const chosen = all.find((id) => id === `${one}:${two}` || id === one);
  return chosen === undefined ? all : all.filter((id) => id === chosen || CALLED[chosen]?.includes(id));
}

/** Help names the other commands. */
const CONCERNS_ALL: ReadonlySet<string> = new Set(['--help', 'help']);
/** The commands that others run. */
const CALLED: Readonly<Record<string, readonly string[]>> = { q: ['why'], 'site:add': ['site:test'] };

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
      helpClass: { target, identifier: 'GryphusHelp' },
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
      helpOptions: { flagSortOrder: 'none' as const },
    },
  };
  return Config.load({ root, pjson: pjson as never });
}

/** Reports an unknown command clearly before any other check. */
function checkCommand(argv: readonly string[], known: readonly string[]): void {
  const first = argv.find((word) => !word.startsWith('-'));
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

function commandOf(words: readonly string[], commands: Readonly<Record<string, Flagged>>): TypedCommand {
  const [one = '', two = ''] = words.filter((word) => !word.startsWith('-'));
  const id = `${one}:${two}` in commands ? `${one}:${two}` : one;
  const flags = commands[id]?.flags ?? {};
  return {
    command: id in commands ? id.replace(':', ' ') : '',
    flags: Object.entries(flags).flatMap(([name, { aliases = [] }]) => [name, ...aliases]),
  };
}

/** `instead`: its name here, if it is a known name from elsewhere. */
function unknown(command: string, instead: string | undefined, known: readonly string[]): GryphusError {
  const near = instead ?? didYouMean(command, known);
  const meant = instead ?? `gryphus ${near}`;
  const topic = command.includes(' ') ? ` ${command.split(' ')[0]}` : '';
  return new GryphusError('usage', `There is no command '${command}'.`, {
    suggestions: [...(near ? [`Did you mean '${meant}'?`] : []), `See \`gryphus${topic} --help\`.`],
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
