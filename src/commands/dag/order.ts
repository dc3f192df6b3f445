import { Flags } from '@oclif/core';
import type { DagSubmitRequest } from '../../index.ts';
import type { CondorOption } from '../condor-options.ts';

const count = (summary: string) => Flags.integer({ min: 0, helpValue: '<n>', summary });
const taken = () => Flags.boolean({ hidden: true });

/** The options of condor_submit_dag. */
export const ORDER_FLAGS = {
  maxjobs: count('Nodes that may have jobs in the queue at once; 0: as many as there are.'),
  maxidle: count('Idle jobs that may be in the queue at once; 0: no limit.'),
  maxpre: count('PRE scripts that may run at once.'),
  maxpost: count('POST scripts that may run at once.'),
  maxhold: count('HOLD scripts that may run at once.'),
  dorescuefrom: count('Continue from the rescue file with this number.'),
  autorescue: Flags.integer({
    min: 0,
    max: 1,
    helpValue: '<0|1>',
    summary: 'Continue from the last rescue file, if there is one (default 1).',
  }),
  load_save: Flags.string({
    helpValue: '<file>',
    summary: 'Continue from a save point file.',
    exclusive: ['dorescuefrom', 'rescuefile', 'dorecovery'],
  }),
  rescuefile: Flags.string({
    helpValue: '<file>',
    summary: 'Continue from this rescue file.',
    exclusive: ['dorescuefrom'],
  }),
  alwaysrunpost: Flags.boolean({
    summary: 'Run the POST script even if the PRE script failed.',
    exclusive: ['dontalwaysrunpost'],
  }),
  dontalwaysrunpost: Flags.boolean({ summary: 'Do not run it then, whatever the configuration says.' }),
  outfile_dir: Flags.string({ helpValue: '<directory>', summary: 'Directory for the log, NAME.dag.dagman.out.' }),
  notification: Flags.string({
    helpValue: '<when>',
    summary: 'When to send mail about the DAG manager: always, complete, error or never.',
  }),
  suppress_notification: Flags.boolean({
    summary: "Send no mail about the nodes' jobs.",
    exclusive: ['dont_suppress_notification'],
  }),
  dont_suppress_notification: Flags.boolean({
    summary: "Send mail about the nodes' jobs, whatever the configuration says.",
  }),
  usedagdir: Flags.boolean({ summary: 'Run each DAG in the directory of its file.' }),
  priority: Flags.integer({ helpValue: '<n>', summary: 'Added to the priority of every node.' }),
  config: Flags.string({ helpValue: '<file>', summary: 'Configuration file of the DAG manager.' }),
  'batch-name': Flags.string({ helpValue: '<name>', summary: 'The name under which `q` shows the DAG and its nodes.' }),
  force: Flags.boolean({ char: 'f', summary: 'Start over, replacing the files of an earlier run.' }),
  update_submit: Flags.boolean({ summary: 'Replace the files of an earlier submit and continue.' }),
  append: Flags.string({
    char: 'a',
    multiple: true,
    multipleNonGreedy: true,
    helpValue: '<line>',
    summary: "Add a line to the submit description of the DAG's manager; may be repeated.",
  }),
  insert_sub_file: Flags.string({
    helpValue: '<file>',
    summary: 'Add the lines of a file to that submit description.',
  }),
  include_env: Flags.string({
    multiple: true,
    multipleNonGreedy: true,
    helpValue: '<names>',
    summary: 'Variables of this environment that the DAG manager and its scripts get.',
  }),
  insert_env: Flags.string({
    multiple: true,
    multipleNonGreedy: true,
    helpValue: '<name=value>',
    summary: 'Variables that the DAG manager and its scripts get.',
  }),
  import_env: Flags.boolean({ summary: 'The whole environment.' }),
  debug: Flags.integer({ hidden: true }),
  // Accepted because it is always in effect.
  dorecovery: taken(),
  verbose: Flags.boolean({ char: 'v', hidden: true }),
  no_recurse: taken(),
  do_recurse: taken(),
  allowversionmismatch: taken(),
  submitmethod: Flags.integer({ hidden: true }),
} as const;

const OTHER_QUEUE = ['Gryphus has one queue, your own, on this machine.', 'Leave it out.'] as const;

/**
 * The options of condor_submit_dag 25. An ambiguous abbreviation is refused, where the real tool takes the first match.
 */
export const CONDOR_SUBMIT_DAG: readonly CondorOption[] = [
  { name: 'AllowVersionMismatch' },
  { name: 'AlwaysRunPost' },
  { name: 'Append', takes: 'word' },
  { name: 'AutoRescue', takes: 'word' },
  { name: 'Batch-Name', takes: 'word' },
  { name: 'Config', takes: 'word' },
  { name: 'DAGMan', refused: ['Gryphus manages DAGs itself.', 'Leave it out.'] },
  { name: 'Debug', takes: 'word' },
  { name: 'do_recurse' },
  { name: 'dont_suppress_notification' },
  { name: 'DontAlwaysRunPost' },
  { name: 'DoRecovery' },
  { name: 'DoRescueFrom', takes: 'word' },
  {
    name: 'DumpRescue',
    refused: [
      'a rescue file is written when a DAG ends without success.',
      '`gryphus dag lint` reads a DAG and runs nothing.',
    ],
  },
  { name: 'Force' },
  { name: 'import_env' },
  { name: 'include_env', takes: 'word' },
  { name: 'insert_env', takes: 'word' },
  { name: 'insert_sub_file', takes: 'word' },
  { name: 'load_save', takes: 'word' },
  { name: 'MaxHold', takes: 'word' },
  { name: 'MaxIdle', takes: 'word' },
  { name: 'MaxJobs', takes: 'word' },
  { name: 'MaxPost', takes: 'word' },
  { name: 'MaxPre', takes: 'word' },
  { name: 'no_recurse' },
  { name: 'no_submit' },
  { name: 'Notification', takes: 'word' },
  { name: 'outfile_dir', takes: 'word' },
  { name: 'Priority', takes: 'word' },
  { name: 'Remote', refused: OTHER_QUEUE },
  { name: 'schedd-address-file', refused: OTHER_QUEUE },
  { name: 'schedd-daemon-ad-file', refused: OTHER_QUEUE },
  { name: 'SubmitMethod', takes: 'word' },
  { name: 'suppress_notification' },
  { name: 'update_submit' },
  { name: 'UseDagDir' },
  { name: 'Valgrind', refused: ['the DAG manager cannot run under valgrind.', 'Leave it out.'] },
  { name: 'Verbose', least: 1 },
];

type Given = Readonly<
  Partial<
    Record<'maxjobs' | 'maxidle' | 'maxpre' | 'maxpost' | 'maxhold' | 'dorescuefrom' | 'priority', number | undefined>
  >
> & {
  readonly autorescue?: number | undefined;
  readonly load_save?: string | undefined;
  readonly rescuefile?: string | undefined;
  readonly outfile_dir?: string | undefined;
  readonly notification?: string | undefined;
  readonly alwaysrunpost?: boolean;
  readonly dontalwaysrunpost?: boolean;
  readonly suppress_notification?: boolean;
  readonly dont_suppress_notification?: boolean;
  readonly import_env?: boolean;
  readonly config?: string | undefined;
  readonly 'batch-name'?: string | undefined;
  readonly usedagdir?: boolean;
  readonly force?: boolean;
  readonly update_submit?: boolean;
  readonly append?: string[] | undefined;
  readonly include_env?: string[] | undefined;
  readonly insert_env?: string[] | undefined;
};

const some = <K extends string, V>(name: K, value: V | undefined) =>
  (value === undefined ? {} : { [name]: value }) as { [k in K]?: V };

const either = (yes: boolean | undefined, no: boolean | undefined) =>
  yes === true ? true : no === true ? false : undefined;

/** The request that the options describe; `inserted`: lines of -insert_sub_file. */
export function requestOf(files: readonly string[], flags: Given, inserted: readonly string[]): DagSubmitRequest {
  return {
    order: {
      files,
      limits: {
        ...some('maxJobs', flags.maxjobs),
        ...some('maxIdle', flags.maxidle),
        ...some('maxPre', flags.maxpre),
        ...some('maxPost', flags.maxpost),
        ...some('maxHold', flags.maxhold),
      },
      ...some('rescueFrom', flags.dorescuefrom),
      ...some('autoRescue', flags.autorescue === undefined ? undefined : flags.autorescue !== 0),
      ...some('saveFile', flags.load_save),
      ...some('rescueFile', flags.rescuefile),
      ...some('outfileDir', flags.outfile_dir),
      ...some('notification', flags.notification),
      ...some('alwaysRunPost', either(flags.alwaysrunpost, flags.dontalwaysrunpost)),
      ...some('suppressNotification', either(flags.suppress_notification, flags.dont_suppress_notification)),
      ...(flags.import_env === true ? { importEnv: true } : {}),
      ...some('priority', flags.priority),
      ...some('configFile', flags.config),
      ...some('batchName', flags['batch-name']),
      ...(flags.usedagdir === true ? { useDagDir: true } : {}),
    },
    force: flags.force === true,
    updateSubmit: flags.update_submit === true,
    append: [...(flags.append ?? []), ...inserted],
    includeEnv: flags.include_env ?? [],
    insertEnv: flags.insert_env ?? [],
  };
}
