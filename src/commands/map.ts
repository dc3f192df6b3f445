import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { GryphusError } from '../errors.ts';
import { counted } from '../util/plain-text.ts';
import type { MapResult } from '../index.ts';
import { GryphusCommand, needed, prose } from './command.ts';
import {
  allOf,
  grouped,
  type InputWords,
  inputsOf,
  inputWords,
  linked,
  namedInputs,
  packed,
  shuffle,
  trimmed,
  withFiles,
} from './map-inputs.ts';
import { MAP_FLAGS } from './map-flags.ts';
import { Halt, haltRule } from './map-halt.ts';
import { JobLog } from './map-joblog.ts';
import { InOrder, tagged } from './map-output.ts';
import { filesOf, plan } from './map-plan.ts';
import { NOBODY_MS, sayIfNobody } from './map-nobody.ts';
import { cutOf, PipeFiles } from './map-pipe.ts';
import { MapProgress } from './map-progress.ts';
import { ResultFiles } from './map-results.ts';
import { secondsOf } from './map-seconds.ts';
import { coresOf, type Given, made, type Numbered, numbered, Slots, spaced, tasksAtOnce } from './map-tasks.ts';
import { MapName, quotedCommand, unnamed } from './map-words.ts';
import { untilLeft } from './until-left.ts';

/** The exit status if more tasks than this failed (as in GNU parallel). */
const MANY = 101;

export class MapCommand extends GryphusCommand {
  static override summary = 'Run a command for each of many inputs, as tasks in the pool.';
  static override description =
    prose(`Inputs follow \`:::\`, or are the lines of the files after \`::::\` (- is standard input), or the lines of standard input.
Several lists are combined, every item with every other; \`:::+\` and \`::::+\` pair a list with the one before it, item by
item. In the command, \`{}\` is the input, quoted for the shell, and \`{2}\` that of the second list; \`{.}\` is the input without
its suffix, \`{/}\` without its directory, \`{//}\` its directory, \`{/.}\` without both, \`{2.}\` and so on for one list; \`{#}\`
is the task's number, \`{%}\` that of a slot, which no other task has at the same time. A command without any of these gets the input as its last argument. Each task's output is printed
whole, in the order of completion. The exit status is the number of failed tasks, at most 101.

Tasks run in the directory where the map is started, on workers that share it: this machine's, and none that was sent to a site.
With --transferfile, --return, --input or --anywhere they run on every worker, this machine's too, each in a directory of its
own that holds the transferred files and is removed afterwards. A file has the same name there as here, so it must be below
this directory. A task that did not make a file of --return has failed.`);
  static override examples = [
    "<%= config.bin %> map 'gzip -9 {}' ::: *.log",
    "<%= config.bin %> map --transferfile {} --return {}.gz 'gzip -9 {}' ::: *.log",
    "seq 1000 | <%= config.bin %> map --retries 2 './simulate --seed {} > out.{}'",
    "find . -name '*.log' -print0 | <%= config.bin %> map -0 'gzip -9 {}'",
    "cat big.log | <%= config.bin %> map -k --pipe --block 10M 'grep -c error'",
    "<%= config.bin %> map 'convert {1} -resize {2} {1/.}-{2}.png' ::: *.jpg ::: 100 200",
    "<%= config.bin %> map --colsep , --header : './fit {alpha} {beta}' :::: grid.csv",
    "<%= config.bin %> map -j 2 'CUDA_VISIBLE_DEVICES=$(({%} - 1)) ./train {}' ::: *.yaml",
    "<%= config.bin %> map --joblog log --resume --halt soon,fail=1 --timeout 1h './measure {}' :::: inputs.txt",
  ];
  static override args = { command: needed('a command line of the shell') };
  static override flags = MAP_FLAGS;

  async run(): Promise<void> {
    // As in GNU parallel, options end where the command begins, and its words are a line for the shell.
    const at = this.argv.indexOf('--');
    const words = at < 0 ? [] : this.argv.splice(at).slice(1);
    const typed = inputWords(words);
    if (typed.at > 0) this.argv.push('--', words.slice(0, typed.at).join(' '));
    const { args, flags } = await this.parse(MapCommand);
    const given = flags.link ? linked(withFiles(typed, flags['arg-file'])) : withFiles(typed, flags['arg-file']);
    const signal = untilLeft();
    const cut = cutOf(flags, given);
    const blocks = cut && new PipeFiles();
    process.once('exit', () => blocks?.end());
    const packs = flags.X || flags.m;
    const size = cut ? 1 : packs ? Infinity : groupSize(flags, given);
    const { names, inputs } = blocks
      ? { names: [], inputs: blocks.rows(process.stdin, cut) }
      : await opened(given, flags);
    const slotted = /(?<!\$)\{%\}/.test(args.command);
    const cores = () => this.withGryphus(flags, coresOf);
    const atOnce = (await tasksAtOnce(flags.jobs, cores)) ?? (slotted || packs ? await cores() : undefined);
    const { log, kept, skip } = records(flags, names);
    let skipped = 0;
    const ends = flags.trim === undefined ? inputs : trimmed(inputs, flags.trim);
    const groups = packs ? packed(ends, atOnce ?? 1) : size === 1 ? ends : grouped(ends, size);
    const rows = numbered(groups, (one) => skip(one) && ++skipped > 0);
    const rule = haltRule(flags.halt);
    const needsAll = rule?.percent || flags.bar || flags.eta || flags.shuf || flags.plus;
    const all = needsAll ? await allOf(rows) : undefined;
    if (all && flags.shuf) shuffle(all);
    const style = { size, whole: flags.replace, plus: flags.plus, context: flags.X, total: all?.length };
    const places = { names, style };
    const command = flags.quote ? quotedCommand(words.slice(0, typed.at), style) : args.command;
    const how = blocks?.plan(command, style) ?? plan(command, places, flags.nice);
    const files = filesOf(flags, places);
    if (cut && files.anywhere)
      throw new GryphusError(
        'usage',
        '--pipe gives blocks to workers that share this machine, so no files are carried.',
        {
          suggestions: ['Leave out --anywhere, --input, --transferfile and --return.'],
        },
      );
    const tagName = flags.tagstring === undefined ? undefined : new MapName(unnamed(flags.tagstring, names), style);
    const timeout = secondsOf('--timeout', flags.timeout);
    const delay = secondsOf('--delay', flags.delay);
    if (flags['dry-run']) {
      for await (const one of all ?? rows) process.stdout.write(`${how.line(one.row, { ...one, slot: 1 })}\n`);
      return;
    }
    const halt = new Halt(rule, all?.length);
    const enough = new AbortController();
    const over = new AbortController();
    let failed = 0;
    let done = 0;
    const begun = performance.now();
    const progress = new MapProgress(flags);
    const slots = new Slots(slotted ? (atOnce ?? Infinity) : Infinity);
    const order = new InOrder<MapResult<Given>>(flags['keep-order'], (one) => {
      if (kept !== undefined) return;
      const { row } = one.of;
      const tag = tagName ? `${tagName.of(row, one.of)}\t` : flags.tag ? `${row.join(' ')}\t` : '';
      if (one.stdout.length > 0) process.stdout.write(tagged(one.stdout, tag));
      if (one.stderr.length > 0) process.stderr.write(tagged(one.stderr, tag));
    });
    await this.withGryphus(flags, async (gryphus) => {
      const given = spaced(all ?? rows, delay, AbortSignal.any([signal, enough.signal, over.signal]));
      const results = gryphus.map(made(given, how, files, slots), {
        executable: how.executable,
        retries: flags.retries,
        signal,
        enough: enough.signal,
        nameOf: ({ row }) => row.join(' '),
        env: environment(flags.env),
        ...(flags.cpus === undefined ? {} : { cpus: flags.cpus }),
        ...(flags.memory === undefined ? {} : { memory: flags.memory }),
        ...(atOnce === undefined || (packs && flags.jobs === undefined) ? {} : { atOnce }),
        ...(timeout === undefined ? {} : { timeout }),
        ...(flags.requirements === undefined ? {} : { requirements: flags.requirements }),
        inputs: files.common,
        anywhere: files.anywhere,
      });
      const nobody = setTimeout(() => void sayIfNobody(gryphus, flags, files.anywhere), NOBODY_MS);
      try {
        for await (const result of results) {
          clearTimeout(nobody);
          slots.free(result.of.slot);
          if (process.stdout.isTTY || result.stderr.length > 0 || result.problem !== undefined) progress.clear();
          const { how: end } = result.ending;
          done++;
          const problem = end.kind === 'by-site' ? end.message : result.problem;
          const status = statusOf(result);
          if (status !== 0) failed++;
          if (problem !== undefined) process.stderr.write(`gryphus: ${result.of.row.join(' ')}: ${problem}\n`);
          log?.add(result.of.number, how.line(result.of.row, result.of), result);
          kept?.add(result.of.number, result.of.row, result);
          blocks?.forget(result.of.number);
          order.take(result);
          progress.show(done, failed, all?.length);
          const stop = halt.take(status);
          if (stop !== undefined) {
            progress.clear();
            process.stderr.write(`gryphus: ${stop.why}, so ${HALTS[stop.when]}.\n`);
            if (stop.when === 'now') break;
            enough.abort();
          }
          if (process.stdout.writableNeedDrain) await once(process.stdout, 'drain', { signal }).catch(() => undefined);
        }
      } finally {
        clearTimeout(nobody);
        over.abort();
        slots.end();
        order.end();
        progress.clear();
        log?.close();
      }
    });
    if (done === 0 && !signal.aborted) {
      const why = skipped > 0 ? `${counted(skipped, 'task')} had ended before` : 'there was no input';
      process.stderr.write(`gryphus: ${why}, so nothing was run.\n`);
    }
    if (flags.summary) {
      const seconds = (performance.now() - begun) / 1000;
      const rate = Math.round(done / seconds);
      process.stderr.write(`${counted(done, 'task')}, ${failed} failed, ${seconds.toFixed(2)} s, ${rate} a second\n`);
    }
    // What is left of the inputs is not read.
    if (halt.halted) process.stdin.destroy();
    process.exitCode ??= halt.status ?? Math.min(failed, MANY);
  }
}

const HALTS = { now: 'the map is stopped', soon: 'no more are started, and those that run are waited for' } as const;

/** As a shell has it. */
function statusOf({ ending: { how }, problem }: MapResult<unknown>): number {
  if (problem !== undefined || how.kind === 'by-site') return 1;
  return how.kind === 'exited' ? how.code : 128 + how.signal;
}

/** How many inputs a task gets from its list. */
function groupSize(
  flags: {
    readonly 'max-replace-args'?: number | undefined;
    readonly 'max-args'?: number | undefined;
    readonly colsep?: string | undefined;
    readonly results?: string | undefined;
  },
  { lists }: InputWords,
): number {
  const size = flags['max-replace-args'] ?? flags['max-args'] ?? 1;
  if (size === 0 && flags.results !== undefined)
    throw new GryphusError('usage', '--results is by inputs, and -N 0 gives the tasks none.', {
      suggestions: ['Leave out --results and write in the command: ./simulate >{#}.out'],
    });
  if (size > 1 && flags.colsep !== undefined)
    throw new GryphusError('usage', `-N ${size} takes whole lines, which --colsep splits.`, {
      suggestions: ['Leave out one of them.'],
    });
  if (size < 2 || lists.length === 1) return size;
  throw new GryphusError('usage', `-N ${size} takes the inputs from one list, and there are ${lists.length}.`, {
    suggestions: ['Give one list, or leave out -N: then a task has one input of each.'],
  });
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', '0': '\0' };

function endByte(end: string): number {
  const bytes = Buffer.from(end);
  if (bytes.length === 1) return bytes[0] ?? 0;
  throw new GryphusError('usage', `--delimiter is one character, and ${JSON.stringify(end)} is not.`);
}

async function opened(
  given: InputWords,
  flags: {
    readonly null: boolean;
    readonly delimiter?: string | undefined;
    readonly colsep?: string | undefined;
    readonly header?: string | undefined;
  },
): Promise<{ readonly names: readonly string[]; readonly inputs: AsyncIterable<readonly string[]> }> {
  const end = flags.null
    ? '\0'
    : (flags.delimiter ?? '\n').replace(/^\\([nt0])$/, (_, letter: string) => ESCAPES[letter] ?? '');
  const options = { end: endByte(end), columns: separator(flags.colsep) };
  if (flags.header === undefined) return { names: [], inputs: inputsOf(given, options) };
  if (flags.header === ':') return namedInputs(given, options);
  throw new GryphusError('usage', `--header cannot be ${JSON.stringify(flags.header)}.`, {
    suggestions: ['Say --header : if the first line has the names; no other header is supported.'],
  });
}

interface Records {
  readonly log: JobLog | undefined;
  readonly kept: ResultFiles | undefined;
  readonly skip: (one: Numbered) => boolean;
}

/** What is written down of the tasks, and which of them it says need not run. */
function records(
  flags: {
    readonly joblog?: string | undefined;
    readonly results?: string | undefined;
    readonly resume: boolean;
    readonly 'resume-failed': boolean;
    readonly 'dry-run': boolean;
  },
  names: readonly string[],
): Records {
  const { joblog, results, resume, 'resume-failed': failed } = flags;
  if (failed && joblog === undefined) throw new GryphusError('usage', '--resume-failed needs --joblog FILE.');
  if (resume && joblog === undefined && results === undefined)
    throw new GryphusError('usage', '--resume needs --joblog FILE or --results DIR.');
  const again = failed ? 'successful' : resume ? 'all' : undefined;
  const kept = results === undefined ? undefined : new ResultFiles(results, names);
  // A dry run may look, but writes nothing.
  const logs = joblog !== undefined && (!flags['dry-run'] || (again !== undefined && existsSync(joblog)));
  const log = logs ? new JobLog(joblog, again) : undefined;
  if (log !== undefined) return { log, kept, skip: ({ number }) => log.has(number) };
  return { log, kept, skip: ({ row }) => resume && kept?.has(row) === true };
}

function separator(given: string | undefined): RegExp | undefined {
  if (given === undefined) return undefined;
  try {
    return new RegExp(given, 'u');
  } catch (cause) {
    throw new GryphusError('usage', `--colsep: ${JSON.stringify(given)} is not a regular expression.`, { cause });
  }
}

/** The part of the user's environment that makes sense on every worker, and what is named. */
function environment(named: readonly string[] = []): Record<string, string> {
  const names = ['PATH', ...named.flatMap((one) => one.split(','))];
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = process.env[name];
      return value === undefined ? [] : [[name, value] as const];
    }),
  );
}
