import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Flags } from '@oclif/core';
import { GryphusError } from '../errors.ts';
import type { Gryphus, MapTask } from '../index.ts';
import { shellQuote } from '../util/shell-quote.ts';
import { GryphusCommand, interruptible, needed, prose } from './command.ts';
import { inputsOf, inputWords } from './map-inputs.ts';

/** Exit status where more tasks failed than this (GNU parallel's). */
const MANY = 101;

export class MapCommand extends GryphusCommand {
  static override summary = 'Run one command over many inputs in the pool, a task for each.';
  static override description =
    prose(`Inputs follow \`:::\`, or are the lines of the files that follow \`::::\` (- is standard input), or of standard
input. \`{}\` in the command is the input, as one word of the shell; without any it is added at the end. What tasks write
comes out whole, in the order of completion. The exit status is the number of tasks that failed, at most 101.`);
  static override examples = [
    "<%= config.bin %> map 'gzip -9 {}' ::: *.log",
    "seq 1000 | <%= config.bin %> map --retries 2 './simulate --seed {} > out.{}'",
    "find . -name '*.log' -print0 | <%= config.bin %> map -0 'gzip -9 {}'",
    '<%= config.bin %> map --keep-order ./measure :::: inputs.txt',
  ];
  static override args = { command: needed('a command line of the shell') };
  static override flags = {
    retries: Flags.integer({
      min: 0,
      default: 0,
      helpValue: '<n>',
      summary: 'Start a task that fails again so often.',
    }),
    cpus: Flags.integer({ min: 1, helpValue: '<n>', summary: 'Cores for each task.' }),
    memory: Flags.integer({ min: 1, helpValue: '<MB>', summary: 'Memory for each task.' }),
    requirements: Flags.string({ helpValue: '<expression>', summary: 'Only workers for which this is true.' }),
    input: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      helpValue: '<file>',
      summary: 'A file that each task finds in a directory of its own.',
    }),
    null: Flags.boolean({ summary: 'Also -0. Inputs that are read end with a NUL byte each, not with the line.' }),
    'keep-order': Flags.boolean({ char: 'k', summary: 'Write results in the order of the inputs.' }),
    summary: Flags.boolean({ summary: 'Say at the end how many tasks were run in what time.' }),
  };

  async run(): Promise<void> {
    const given = inputWords(this.argv);
    this.argv.splice(given.at);
    const { args, flags } = await this.parse(MapCommand);
    const { signal } = interruptible();
    const how = plan(args.command);
    let failed = 0;
    let done = 0;
    const begun = performance.now();
    const order = new InOrder(flags['keep-order'], (one) => {
      if (one.stdout.length > 0) process.stdout.write(one.stdout);
      if (one.stderr.length > 0) process.stderr.write(one.stderr);
    });
    await this.withGryphus(flags, async (gryphus) => {
      const results = gryphus.map(made(inputsOf(given, flags.null), how.words), {
        executable: how.executable,
        retries: flags.retries,
        signal,
        env: environment(),
        ...(flags.cpus === undefined ? {} : { cpus: flags.cpus }),
        ...(flags.memory === undefined ? {} : { memory: flags.memory }),
        ...(flags.requirements === undefined ? {} : { requirements: flags.requirements }),
        ...(flags.input === undefined ? {} : { inputs: flags.input }),
      });
      const nobody = setTimeout(() => void sayIfNobody(gryphus, flags.requirements, flags.cpus ?? 1), NOBODY_MS);
      for await (const result of results) {
        clearTimeout(nobody);
        const { how: end } = result.ending;
        done++;
        if (end.kind !== 'exited' || end.code !== 0) failed++;
        if (end.kind === 'by-site') process.stderr.write(`gryphus: ${result.of}: ${end.words}\n`);
        order.take(result);
        if (process.stdout.writableNeedDrain) await new Promise((resume) => process.stdout.once('drain', resume));
      }
    });
    if (flags.summary) {
      const seconds = (performance.now() - begun) / 1000;
      const rate = Math.round(done / seconds);
      process.stderr.write(`${done} tasks, ${failed} failed, ${seconds.toFixed(2)} s, ${rate} a second\n`);
    }
    if (failed > 0) process.exitCode = Math.min(failed, MANY);
  }
}

/** After so long without a result it is asked whether anybody takes the tasks. */
const NOBODY_MS = 10_000;

async function sayIfNobody(gryphus: Gryphus, requirements: string | undefined, cpus: number): Promise<void> {
  const ads = await gryphus.slots(requirements?.replaceAll(/\bTARGET\./gi, '')).catch(() => undefined);
  if (ads === undefined || ads.some((ad) => Number(ad['TotalCpus'] ?? 0) >= cpus)) return;
  process.stderr.write(
    'gryphus: no worker that the pool has now seems to take these tasks, so they wait.\n  → See `gryphus status --pool`.\n',
  );
}

interface Written {
  readonly index: number;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
}

/** Passes results on as they come, or as their inputs came. */
class InOrder {
  readonly #waiting = new Map<number, Written>();
  readonly #keep: boolean;
  readonly #write: (one: Written) => void;
  #next = 0;

  constructor(keep: boolean, write: (one: Written) => void) {
    this.#keep = keep;
    this.#write = write;
  }

  take(one: Written): void {
    if (!this.#keep) return this.#write(one);
    this.#waiting.set(one.index, one);
    for (let next = this.#waiting.get(this.#next); next; next = this.#waiting.get(this.#next)) {
      this.#waiting.delete(this.#next++);
      this.#write(next);
    }
  }
}

async function* made(
  inputs: Iterable<string> | AsyncIterable<string>,
  words: (input: string) => readonly string[],
): AsyncGenerator<MapTask<string>> {
  for await (const input of inputs) yield { args: words(input), of: input };
}

/** Words that a shell takes as they are: then none is needed. */
const PLAIN = /^[A-Za-z0-9_./:@%+,{}-]+$/;

/** The program, and what follows it for an input. */
function plan(command: string): { executable: string; words: (input: string) => readonly string[] } {
  const [program = '', ...rest] = command.trim().split(/[ \t]+/);
  if (program === '') throw new GryphusError('usage', 'The command is empty.');
  const path = [program, ...rest].every((word) => PLAIN.test(word)) ? found(program) : undefined;
  if (path === undefined)
    return { executable: '/bin/sh', words: (input) => ['-c', filled(command, shellQuote(input))] };
  const words = command.includes('{}') ? rest : [...rest, '{}'];
  return { executable: path, words: (input) => words.map((word) => word.replaceAll('{}', () => input)) };
}

function filled(command: string, word: string): string {
  return command.includes('{}') ? command.replaceAll('{}', () => word) : `${command} ${word}`;
}

/** A program of the system, which is where it is on every worker. */
function found(program: string): string | undefined {
  if (program.includes('{}')) return undefined;
  if (program.includes('/')) return program.startsWith('/') && existsSync(program) ? program : undefined;
  return ['/usr/bin', '/bin'].map((dir) => join(dir, program)).find((path) => existsSync(path));
}

/** What a command finds where it is typed, as far as it is the user's to have everywhere. */
function environment(): Record<string, string> {
  const { PATH } = process.env;
  return PATH === undefined ? {} : { PATH };
}
