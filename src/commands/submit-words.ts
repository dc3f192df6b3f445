import { Flags } from '@oclif/core';
import { GryphusError } from '../errors.ts';
import type { SubmitRequest } from '../index.ts';
import type { CondorOption } from './condor-options.ts';

/** The options of `gryphus submit`. */
export const SUBMIT_FLAGS = {
  append: Flags.string({
    char: 'a',
    multiple: true,
    multipleNonGreedy: true,
    helpValue: '<line>',
    summary: 'Add a line to the end of the file; may be repeated.',
  }),
  queue: Flags.string({
    helpValue: '<arguments>',
    summary: 'Arguments of a queue statement, for a file that has none.',
  }),
  file: Flags.string({ helpValue: '<file>', summary: 'The submit file.' }),
  'batch-name': Flags.string({ helpValue: '<name>', summary: 'The name under which `q` shows the jobs together.' }),
  'batch-id': Flags.string({ helpValue: '<id>', summary: 'Set JobBatchId, which groups clusters.' }),
  maxjobs: Flags.integer({
    min: -1,
    helpValue: '<n>',
    summary: 'Submit nothing if there would be more jobs than this.',
  }),
  factory: Flags.boolean({ summary: 'Create jobs as earlier ones leave the queue (late materialization).' }),
  disable: Flags.boolean({ summary: 'Do not check that input files and output directories exist.' }),
  unused: Flags.boolean({ summary: 'Do not warn of lines that no job uses.' }),
  'allow-crlf-script': Flags.boolean({ summary: 'Accept a script with DOS line endings, with a warning.' }),
  site: Flags.string({ helpValue: '<site>', summary: 'For a script: the site that runs it, or pool.' }),
  wait: Flags.boolean({ summary: 'Wait for the jobs to end; exit 1 if one is held, was removed, or failed.' }),
  'dry-run': Flags.boolean({ summary: "Print the jobs' ClassAds; change nothing." }),
  dump: Flags.string({ helpValue: '<file>', summary: 'Write the ClassAds of a dry run to a file.' }),
  json: Flags.boolean({ summary: 'Print JSON: the cluster, or with --dry-run an array of ads.' }),
  terse: Flags.boolean({ summary: 'Print only the range of ids.', exclusive: ['json', 'verbose'] }),
  verbose: Flags.boolean({ char: 'v', summary: "Also print the jobs' ClassAds." }),
  // Ignored: a description always makes one cluster.
  'single-cluster': Flags.boolean({ hidden: true }),
} as const;

const OTHER_QUEUE = 'Gryphus has one queue, your own, on this machine.';
const HERE = 'Leave it out. To use another installation of Gryphus on this machine, name its directory: --home DIR.';

/** The options of condor_submit 25, in its order: an abbreviation means the first option that begins with it. */
export const CONDOR_SUBMIT: readonly CondorOption[] = [
  { name: 'verbose', least: 1 },
  { name: 'terse', least: 3 },
  { name: 'disable', least: 3 },
  {
    name: 'debug',
    least: 2,
    colon: true,
    refused: [
      'commands write no debugging output.',
      'See `gryphus why JOB`, and the daemons’ logs below the state directory.',
    ],
  },
  { name: 'dry-run', least: 3, colon: true, takes: 'word', means: dryRun },
  {
    name: 'spool',
    least: 1,
    refused: [
      'submit does not copy files into a spool: they are read in place when a job starts, and results go straight to where they belong.',
      'Leave it out.',
    ],
  },
  { name: 'file', least: 2, takes: 'word' },
  { name: 'digest', least: 6, refused: ['submit creates the digest of a cluster itself.', 'Leave it out.'] },
  { name: 'factory', least: 2 },
  { name: 'generator', least: 1, means: () => ['--factory'] },
  { name: 'address', least: 2, refused: [OTHER_QUEUE, HERE] },
  { name: 'remote', least: 1, refused: [OTHER_QUEUE, HERE] },
  { name: 'name', least: 1, refused: [OTHER_QUEUE, HERE] },
  { name: 'append', least: 1, takes: 'word' },
  { name: 'batch-name', least: 1, takes: 'word' },
  { name: 'batch-id', least: 1, takes: 'word' },
  { name: 'queue', least: 1, takes: 'words', means: (message) => [`--queue=${message}`] },
  { name: 'table', least: 5, takes: 'word', means: (file) => [`--queue=from table ${file}`] },
  { name: 'maxjobs', least: 3, takes: 'word' },
  { name: 'single-cluster', least: 3 },
  { name: 'pool', least: 2, refused: [OTHER_QUEUE, HERE] },
  {
    name: 'password',
    least: 2,
    refused: ['a password does not belong on a command line.', 'See `gryphus cred myproxy`.'],
  },
  { name: 'unused', least: 1, toggles: true },
  { name: 'dump', least: 2, takes: 'word' },
  { name: 'force-mpi-universe', least: 7, refused: ['the MPI universe is not supported.', 'Leave it out.'] },
  { name: 'allow-crlf-script', least: 8 },
  {
    name: 'capabilities',
    least: 3,
    colon: true,
    refused: ['there is no schedd to ask.', 'docs/submit-commands.md says what each submit command does.'],
  },
  {
    name: 'interactive',
    least: 1,
    refused: [
      'a submit file does not describe a session.',
      'Open a shell in a job: gryphus run --tty --cpus 4 --memory 8G -- bash',
    ],
  },
];

/** `-dry-run[:full] FILE`; `-` means standard output. */
function dryRun(file: string, colon = ''): readonly string[] {
  const odd = colon.split(',').find((option) => option !== '' && option !== 'full');
  if (odd !== undefined) {
    throw new GryphusError('usage', `-dry-run:${odd}: a dry run writes the jobs' ads, and nothing else.`, {
      suggestions: ['Write -dry-run FILE, or -dry-run - for standard output.'],
    });
  }
  if (file.startsWith('-') && file !== '-') throw new GryphusError('usage', '-dry-run requires another argument.');
  return file === '-' ? ['--dry-run'] : ['--dump', file];
}

interface SubmitFlags {
  readonly append?: string[] | undefined;
  readonly queue?: string | undefined;
  readonly file?: string | undefined;
  readonly 'batch-name'?: string | undefined;
  readonly 'batch-id'?: string | undefined;
  readonly maxjobs?: number | undefined;
  readonly factory?: boolean;
  readonly disable?: boolean;
  readonly unused?: boolean;
  readonly 'allow-crlf-script'?: boolean;
}

/**
 * The request in the words and options of `gryphus submit`, without the text of the description in `file` (`-`:
 * standard input).
 */
export interface SubmitArguments {
  /** `undefined`: the words themselves are the description. */
  readonly file: string | undefined;
  readonly request: Omit<SubmitRequest, 'text' | 'cwd'>;
}

/** Reads the words after the options. Throws GryphusError 'usage'. */
export function submitArguments(words: readonly string[], flags: SubmitFlags): SubmitArguments {
  const assign = words.filter((word) => /^[^/=]+=/.test(word));
  const files = [...(flags.file === undefined ? [] : [flags.file]), ...words.filter((word) => !assign.includes(word))];
  const [named, more] = files;
  if (more !== undefined) throw new GryphusError('usage', `One submit file at a time: '${more}' is one too many.`);
  const append = flags.append ?? [];
  // Like condor_submit: if the options say what to run and how often, standard input is not read.
  const whole = flags.queue !== undefined && (assign.length > 0 || append.length > 0);
  const file = named ?? (whole ? undefined : '-');
  return {
    file,
    request: {
      ...(file === undefined ? {} : { file }),
      append,
      assign,
      ...(flags.queue === undefined ? {} : { queue: flags.queue }),
      ...(flags['batch-name'] === undefined ? {} : { batchName: flags['batch-name'] }),
      ...(flags['batch-id'] === undefined ? {} : { batchId: flags['batch-id'] }),
      ...(flags.maxjobs === undefined ? {} : { maxJobs: flags.maxjobs }),
      ...(flags.factory === true ? { factory: true } : {}),
      ...(flags.disable === true ? { checkFiles: false } : {}),
      ...(flags.unused === true ? { warnUnused: false } : {}),
      ...(flags['allow-crlf-script'] === true ? { allowCrlfScript: true } : {}),
    },
  };
}
