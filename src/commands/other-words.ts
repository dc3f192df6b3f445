import { didYouMean } from '../util/did-you-mean.ts';
import type { CondorOption } from './condor-options.ts';

/** Commands that users of HTCondor, Slurm, PBS, Grid Engine, LSF or a shell type out of habit, and their names here. */
const INSTEAD: Readonly<Record<string, string>> = {
  'gryphus q': 'queue jobs ls list ps joblist tasks condor_q squeue qstat bjobs llq',
  'gryphus q --watch': 'watch',
  'gryphus submit FILE': 'sub condor_submit sbatch qsub bsub llsubmit',
  'gryphus run -- COMMAND': 'srun condor_run aprun jsrun prun',
  'gryphus rm JOBS': 'cancel kill delete del remove abort condor_rm scancel qdel bkill',
  'gryphus hold JOBS': 'condor_hold qhold bstop block',
  'gryphus release JOBS': 'unhold condor_release qrls bresume',
  'gryphus retry JOBS': 'rerun restart resubmit again requeue brequeue qrerun',
  'gryphus edit JOBS NAME=VALUE': 'set qedit modify alter update condor_qedit scontrol qalter bmod',
  'gryphus edit JOBS JobPrio=N': 'prio priority nice condor_prio',
  'gryphus move JOBS SITE': 'mv route reroute migrate',
  'gryphus wait JOBS': 'await condor_wait',
  'gryphus tail JOB': 'logs output out stdout cat peek condor_tail qpeek bpeek',
  'gryphus log JOB': 'userlog condor_userlog events',
  'gryphus history': 'hist done finished completed condor_history sacct qacct bhist',
  'gryphus why JOBS': 'analyze explain reason condor_analyze',
  'gryphus q -l JOB': 'show info describe details inspect checkjob',
  'gryphus ssh JOB': 'shell exec attach login_to ssh-to-job condor_ssh_to_job',
  'gryphus top --all': 'condor_top monitor sstat',
  'gryphus vacate JOBS': 'condor_vacate_job condor_vacate evict preempt',
  'gryphus checkpoint JOBS': 'condor_checkpoint ckpt snapshot',
  'gryphus suspend JOBS': 'pause stop condor_suspend',
  'gryphus continue JOBS': 'resume cont unsuspend condor_continue',
  'gryphus userprio': 'condor_userprio sprio sshare fairshare',
  'gryphus status --pool': 'condor_status slots workers machines pool condor_who',
  'gryphus status --sites': 'sinfo nodes qhost pbsnodes bhosts bqueues hosts clusters partitions queues',
  'gryphus site list': 'sites',
  'gryphus site add NAME URL': 'add',
  'gryphus site login SITE': 'login auth',
  'gryphus glidein list': 'glideins pilots',
  'gryphus glidein start --site SITE': 'salloc condor_glidein glide pilot',
  'gryphus map COMMAND ::: INPUTS': 'parallel xargs foreach array',
  'gryphus dag submit FILE': 'submit_dag condor_submit_dag condor_dagman dagman workflow',
  'gryphus cred list': 'credentials creds klist proxies',
  'gryphus cred proxy init': 'proxy grid-proxy-init voms-proxy-init',
  'gryphus up': 'start on condor_on condor_master daemon',
  'gryphus down': 'shutdown quit exit halt off condor_off',
  'gryphus config': 'conf settings get condor_config_val',
  'gryphus --version': 'condor_version',
};

function words(text: string): string[] {
  return text.split(' ');
}

/** The command that is known by this name elsewhere; `undefined` if none is. */
export function commandFor(word: string): string | undefined {
  return Object.keys(INSTEAD).find((way) => words(INSTEAD[way] ?? '').includes(word.toLowerCase()));
}

/** The command that is known elsewhere by a name like this one. */
export function commandLike(word: string): string | undefined {
  // A short word resembles too many others.
  const names = Object.values(INSTEAD).flatMap((some) => words(some).filter((name) => name.length > 4));
  const near = didYouMean(word, names);
  return near && commandFor(near);
}

/** For a topic's commands, names that users try instead. */
const SYNONYMS = [
  'rm remove delete del drop erase cancel kill',
  'list ls all show',
  'show info describe get print config edit',
  'add new create define register',
  'test check probe ping doctor',
  'status q show list info ls',
  'submit run start',
  'start submit new run launch add',
  'stop rm kill cancel end remove',
  'login auth connect unlock',
  'halt hold pause stop suspend',
  'resume release continue unhold',
] as const;

export function synonymFor(word: string, known: readonly string[]): string | undefined {
  return SYNONYMS.map(words).find(([name = '', ...others]) => known.includes(name) && others.includes(word))?.[0];
}

const ONE_QUEUE = 'this agent has a single queue.';
const ANOTHER = 'Another agent has a home of its own: gryphus q --home DIRECTORY';

/** Options of condor_q other than those that `q` has under the same name. */
export const CONDOR_Q: readonly CondorOption[] = [
  { name: 'analyze', least: 3, colon: true, means: () => ['--analyze'] },
  { name: 'better-analyze', least: 3, colon: true, means: () => ['--analyze'] },
  {
    name: 'reverse-analyze',
    least: 3,
    refused: ['jobs are analyzed one by one, not for a machine.', 'gryphus why JOBS'],
  },
  { name: 'submitter', least: 3, takes: 'word', means: (owner) => [owner] },
  { name: 'global', least: 2, refused: [ONE_QUEUE, ANOTHER] },
  { name: 'name', least: 3, refused: [ONE_QUEUE, ANOTHER] },
  { name: 'pool', least: 3, refused: [ONE_QUEUE, ANOTHER] },
  { name: 'schedd-constraint', least: 3, refused: [ONE_QUEUE, ANOTHER] },
  { name: 'direct', least: 3, refused: [ONE_QUEUE, ANOTHER] },
  { name: 'userlog', least: 5, refused: ['a user log is read by another command.', 'gryphus log FILE'] },
  {
    name: 'factory',
    least: 3,
    refused: [
      'there is no table of jobs that are not materialized yet.',
      'gryphus q counts them in TOTAL, and says below the totals how many they are',
    ],
  },
  { name: 'jobset', least: 4, refused: ['there are no job sets.', 'gryphus q shows jobs of one batch name together'] },
  {
    name: 'autocluster',
    least: 4,
    refused: ['there are no autoclusters.', 'gryphus q -af:h RequestCpus RequestMemory'],
  },
  { name: 'unmatchable', least: 4, refused: ['this is shown for each job.', 'gryphus why JOBS'] },
  { name: 'io', least: 2, refused: ['the I/O of jobs is not measured.', 'gryphus top --all'] },
  {
    name: 'goodput',
    least: 3,
    refused: ['there is no table for this.', 'gryphus q -af:jh RemoteWallClockTime CommittedTime NumJobStarts'],
  },
  {
    name: 'cputime',
    least: 2,
    refused: ['there is no table for this.', 'gryphus q -af:jh RemoteUserCpu RemoteSysCpu'],
  },
  { name: 'currentrun', least: 2, refused: ['there is no table for this.', 'gryphus q -af:jh JobCurrentStartDate'] },
  {
    name: 'hold-codes',
    least: 5,
    refused: ['there is no table for this.', 'gryphus q -af:jh HoldReasonCode HoldReason'],
  },
  { name: 'aaf', least: 3, refused: ['the columns of a table are fixed.', 'gryphus q -af:jh ATTRIBUTES'] },
  // These change nothing here: lines are streamed, errors are short, and user priorities are always included.
  { name: 'stream-results', least: 3, means: () => [] },
  { name: 'expert', least: 3, means: () => [] },
  { name: 'nouserprios', least: 3, means: () => [] },
  { name: 'version', least: 4, refused: ['all parts have the same version.', 'gryphus --version'] },
];

const ONE_HISTORY = 'this agent has a single history, which is always read.';

/** Options of condor_history other than those that `history` has under the same name. */
export const CONDOR_HISTORY: readonly CondorOption[] = [
  // As it is here, too.
  { name: 'backwards', least: 4, means: () => [] },
  { name: 'completedsince', least: 5, takes: 'word', means: (time) => [`--completedsince=${time}`] },
  { name: 'forwards', least: 4, refused: ['the latest jobs come first.', 'gryphus history -af:j ATTRIBUTES | tac'] },
  {
    name: 'since',
    least: 3,
    refused: ['say what the jobs have in common.', "gryphus history --constraint 'ClusterId > 12'"],
  },
  { name: 'scanlimit', least: 4, refused: ['all of the history is read.', 'gryphus history --limit N'] },
  { name: 'userlog', least: 5, refused: ['a user log is read by another command.', 'gryphus log FILE'] },
  ...['name', 'pool', 'file', 'search', 'local', 'schedd'].map(
    (name): CondorOption => ({ name, least: 3, refused: [ONE_HISTORY, ANOTHER.replace(' q ', ' history ')] }),
  ),
];

const DAEMONS = 'the daemons belong to this agent, not to a pool.';

/** Options of condor_userprio other than those that `userprio` has under the same name. */
export const CONDOR_USERPRIO: readonly CondorOption[] = [
  ...['setprio', 'setfactor', 'setaccum', 'setbegin', 'setlast'].map(
    (name): CondorOption => ({ name, least: 5, takes: 'words', means: (words) => [`--${name}`, words] }),
  ),
  { name: 'resetusage', least: 6, takes: 'word' },
  // All columns and all owners are always shown.
  ...['all', 'allusers', 'usage', 'priority', 'flat'].map((name): CondorOption => ({ name, means: () => [] })),
];

/** Options of condor_status other than those that `status` has under the same name. */
export const CONDOR_STATUS: readonly CondorOption[] = [
  { name: 'schedd', least: 3, refused: [DAEMONS, 'gryphus status shows the Scheduler'] },
  { name: 'master', least: 3, refused: [DAEMONS, 'gryphus status shows what runs'] },
  {
    name: 'negotiator',
    least: 3,
    refused: [DAEMONS, "gryphus status shows what runs; the pool's central manager negotiates"],
  },
  { name: 'collector', least: 3, refused: [DAEMONS, 'gryphus status --pool shows the workers that it knows'] },
  { name: 'submitters', least: 3, refused: ['owners of jobs have a table of their own.', 'gryphus userprio'] },
  { name: 'grid', least: 3, refused: ['sites have a table of their own.', 'gryphus status --sites'] },
  { name: 'any', least: 3, refused: [DAEMONS, 'gryphus status --pool -l, gryphus status --sites -l'] },
  { name: 'name', least: 3, takes: 'word', means: (name) => [name] },
  { name: 'version', least: 4, refused: ['all parts have the same version.', 'gryphus --version'] },
];
