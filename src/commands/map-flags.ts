import { Flags } from '@oclif/core';

/** The options of `map`; most have GNU parallel's names and meanings (test/tools/parallel.test.ts compares them). */
export const MAP_FLAGS = {
  retries: Flags.integer({
    min: 0,
    default: 0,
    helpValue: '<n>',
    summary: 'How many times to retry a failed task.',
  }),
  cpus: Flags.integer({ min: 1, helpValue: '<n>', summary: 'Cores for each task.' }),
  memory: Flags.integer({ min: 1, helpValue: '<MB>', summary: 'Memory for each task.' }),
  requirements: Flags.string({ helpValue: '<expression>', summary: 'Only workers for which this is true.' }),
  transferfile: Flags.string({
    aliases: ['tf'],
    multiple: true,
    multipleNonGreedy: true,
    helpValue: '<file>',
    summary: 'An input file of each task ({} and so on), available to it under the same name.',
  }),
  return: Flags.string({
    multiple: true,
    multipleNonGreedy: true,
    helpValue: '<file>',
    summary: 'An output file of each task ({.}.out and so on), brought back here.',
  }),
  input: Flags.string({
    multiple: true,
    multipleNonGreedy: true,
    helpValue: '<file>',
    summary: 'A file that every task finds under its base name; with {} in it, as --transferfile.',
  }),
  anywhere: Flags.boolean({ summary: 'Also use workers that do not share this directory, with no files.' }),
  link: Flags.boolean({ summary: 'Pair all lists; the shorter ones begin again.' }),
  'no-run-if-empty': Flags.boolean({ char: 'r', summary: 'As always: without an input nothing is run.' }),
  delimiter: Flags.string({
    char: 'd',
    helpValue: '<character>',
    summary: 'What ends an input that is read, instead of a newline.',
  }),
  null: Flags.boolean({ summary: 'Input items are separated by NUL, not by newline (also -0).' }),
  'keep-order': Flags.boolean({ char: 'k', summary: 'Write results in the order of the inputs.' }),
  jobs: Flags.string({
    char: 'j',
    charAliases: ['P'],
    aliases: ['max-procs'],
    helpValue: '<n>',
    summary:
      "Run at most this many tasks at once: 8, 50% of the pool's cores, +2 or -2 of them; 0: as many as the pool can.",
  }),
  colsep: Flags.string({
    char: 'C',
    helpValue: '<regex>',
    summary: 'Separator of several inputs on one line; {1} is the first.',
  }),
  header: Flags.string({
    helpValue: ':',
    summary: 'The first line (or the first item of each list) names the inputs; use {name} in the command.',
  }),
  'max-replace-args': Flags.integer({
    char: 'N',
    min: 0,
    helpValue: '<n>',
    summary: 'How many inputs of the list each task gets, as {1}, {2} and so on; 0: none.',
  }),
  'max-args': Flags.integer({ char: 'n', min: 1, helpValue: '<n>', summary: 'Same as -N.' }),
  X: Flags.boolean({
    char: 'X',
    exclusive: ['m', 'max-replace-args', 'max-args', 'pipe'],
    summary: 'Give tasks as many inputs as a command line takes; a word with {} is repeated for each.',
  }),
  m: Flags.boolean({
    char: 'm',
    exclusive: ['max-replace-args', 'max-args', 'pipe'],
    summary: 'As -X, where {} is all of the inputs.',
  }),
  replace: Flags.string({ char: 'I', helpValue: '<text>', summary: 'What stands for an input instead of {}.' }),
  quote: Flags.boolean({
    char: 'q',
    summary: 'The words of the command are a program and its arguments, not a line for the shell.',
  }),
  trim: Flags.option({
    options: ['n', 'l', 'r', 'lr', 'rl'] as const,
    helpValue: '<where>',
    summary: 'Remove blanks from the left (l), the right (r) or both ends (lr) of the inputs.',
  })(),
  plus: Flags.boolean({
    summary: 'Also {..} {...} {/..} {/...} (without more suffixes), {+/} {+.} {+..} {+...} (what those remove), {##}.',
  }),
  nice: Flags.integer({ helpValue: '<n>', exclusive: ['pipe'], summary: 'Run the tasks with this niceness.' }),
  'arg-file': Flags.string({
    char: 'a',
    multiple: true,
    multipleNonGreedy: true,
    helpValue: '<file>',
    summary: 'A file of inputs, as after ::::.',
  }),
  pipe: Flags.boolean({
    summary: 'Give each task a block of standard input to read, and no inputs.',
  }),
  block: Flags.string({
    helpValue: '<bytes>',
    summary: 'Size of a block of --pipe; 1M without it.',
  }),
  recend: Flags.string({ helpValue: '<text>', summary: 'How a record of --pipe ends; a newline without it.' }),
  recstart: Flags.string({ helpValue: '<text>', summary: 'How a record of --pipe begins.' }),
  shuf: Flags.boolean({ summary: 'Run the tasks in random order; all inputs are read first.' }),
  tagstring: Flags.string({
    helpValue: '<text>',
    summary: 'Begin each line of output with this and a tab; {} and so on.',
  }),
  tag: Flags.boolean({ summary: 'Begin each line of output with the inputs and a tab.' }),
  'dry-run': Flags.boolean({ aliases: ['dryrun'], summary: 'Print the command lines, and run nothing.' }),
  joblog: Flags.string({
    helpValue: '<file>',
    summary: 'Write a log line for each finished task; with + before the name, append to the file.',
  }),
  results: Flags.string({
    helpValue: '<dir>',
    summary: 'Write outputs to DIR/1/VALUE/stdout and stderr; they are not printed.',
  }),
  resume: Flags.boolean({ summary: 'Skip the tasks, by number, that --joblog (or --results) already records.' }),
  'resume-failed': Flags.boolean({ summary: 'Like --resume, but run failed tasks again.' }),
  halt: Flags.string({
    aliases: ['halt-on-error'],
    helpValue: '<when>',
    summary:
      'Stop early: now,fail=1 (kills running tasks), soon,fail=3, now,success=1, soon,done=9, soon,fail=20%, never.',
  }),
  env: Flags.string({
    multiple: true,
    multipleNonGreedy: true,
    helpValue: '<name>',
    summary: 'A variable of the environment that the tasks get too, besides PATH.',
  }),
  timeout: Flags.string({
    helpValue: '<time>',
    summary: 'Time limit of each task: seconds, or a time such as 1h30m.',
  }),
  delay: Flags.string({
    helpValue: '<time>',
    summary: 'Time between handing one task to the pool and the next.',
  }),
  bar: Flags.boolean({ summary: 'Show a progress bar at a terminal; all inputs are read first.' }),
  progress: Flags.boolean({ summary: 'Show at a terminal how many tasks are done.' }),
  eta: Flags.boolean({ summary: 'Show the estimated time left at a terminal; all inputs are read first.' }),
  summary: Flags.boolean({ summary: 'Print the number of tasks and the time at the end.' }),
};
