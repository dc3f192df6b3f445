import type { JobMaker, Step } from '../maker.ts';
import { CHECKPOINT_ENGINES, engineNamed } from '../../job/checkpoint-engines.ts';
import { deferredBy } from './deferral.ts';
import { UNIVERSE } from '../../job/universe.ts';
import { canReconnect } from './universe.ts';

/** How long a job runs on without contact to its submitter, in seconds: HTCondor's JOB_DEFAULT_LEASE_DURATION. */
const LEASE = 2400;
const SHORTEST_LEASE = 20;
const INT_MAX = 2_147_483_647;

/** Attributes that follow from others unless the user has set them. */
export const automatic: Step = {
  name: '(automatic)',
  run(job) {
    const { draft, kind } = job;
    if (!draft.has('MaxHosts') && kind.universe !== UNIVERSE.mpi) {
      job.setInt('MinHosts', 1);
      job.setInt('MaxHosts', 1);
    }
    if (!draft.has('CurrentHosts')) job.setInt('CurrentHosts', 0);
    if (draft.has('SuccessCheckpointExitCode')) job.setBool('WantFTOnCheckpoint', true);
    if (draft.bool('OCUWanted') !== undefined) job.setInt('MaxJobRetirementTime', INT_MAX);
    if (canReconnect(kind.universe) && !draft.has('JobLeaseDuration')) job.setInt('JobLeaseDuration', LEASE);
    if (!draft.has('JobPrio')) job.setInt('JobPrio', 0);
    if (draft.has('JobStarterLog') && !draft.has('JobStarterDebug')) job.setBool('JobStarterDebug', true);
  },
};

/** A program is checkpointed with all the files of its sandbox, so it must have one and nothing else may save them. */
function checkpointMistakes(job: JobMaker): void {
  const { draft } = job;
  const engine = draft.string('CheckpointEngine');
  if (engine !== undefined && engineNamed(engine) === undefined)
    throw job.fault('checkpoint_engine', `There is no checkpoint engine '${engine}'.`, [
      `Use one of: ${CHECKPOINT_ENGINES.join(', ')}.`,
    ]);
  if (draft.bool('WantCheckpoint') !== true) return;
  if (job.kind.universe === UNIVERSE.parallel)
    throw job.fault('want_checkpoint', 'Parallel jobs cannot be checkpointed by want_checkpoint.', [
      'Remove it; programs that save their work themselves have checkpoint_exit_code.',
    ]);
  if (job.kind.universe !== UNIVERSE.vanilla) return;
  if (draft.string('ShouldTransferFiles') === 'NO')
    throw job.fault('want_checkpoint', 'want_checkpoint and should_transfer_files = NO are incompatible.', [
      'Write should_transfer_files = YES: the files in its own directory move with the program.',
    ]);
  if (draft.string('WhenToTransferOutput') === 'ON_EXIT_OR_EVICT')
    throw job.fault(
      'want_checkpoint',
      'want_checkpoint and when_to_transfer_output = ON_EXIT_OR_EVICT are incompatible.',
      ['Write when_to_transfer_output = ON_EXIT: a checkpoint includes all files.'],
    );
  if (draft.has('SuccessCheckpointExitCode'))
    throw job.fault('want_checkpoint', 'want_checkpoint and checkpoint_exit_code are incompatible.', [
      'Use want_checkpoint for a program that does not save its work itself.',
    ]);
  if (draft.has('ContainerImage') || draft.has('DockerImage'))
    throw job.fault('want_checkpoint', 'Programs in containers cannot be checkpointed.', ['Remove want_checkpoint.']);
}

/** A program whose calls are answered from home runs in a directory of its own, and is not moved. */
function remoteMistakes(job: JobMaker): void {
  const { draft } = job;
  if (draft.bool('WantRemoteIO') !== true || job.kind.universe !== UNIVERSE.vanilla) return;
  if (draft.bool('WantCheckpoint') === true)
    throw job.fault('want_remote_io', 'want_remote_io and want_checkpoint are incompatible.', [
      'Choose one: what a program has open at home is not part of its checkpoint.',
    ]);
  if (draft.string('ShouldTransferFiles') === 'NO')
    throw job.fault('want_remote_io', 'want_remote_io and should_transfer_files = NO are incompatible.', [
      'Write should_transfer_files = YES: the job runs in a directory of its own, and reaches the submit directory from there.',
    ]);
  if (draft.has('ContainerImage') || draft.has('DockerImage'))
    throw job.fault('want_remote_io', 'Programs in containers cannot reach files at home.', ['Remove want_remote_io.']);
}

/** Values that are surely mistakes. */
export const mistakes: Step = {
  name: '(mistakes)',
  run(job) {
    const { draft } = job;
    checkpointMistakes(job);
    remoteMistakes(job);
    const user = draft.string('NotifyUser') ?? '';
    if (/^(never|false)$/i.test(user)) {
      job.warn(
        `You used  notify_user=${user}  in your submit file. This means notification email will go to user "${user}". ` +
          'If you do not want notification email, put "notification = never" into your submit file, instead.',
        'notify_user',
      );
    }
    const history = draft.number('JobMachineAttrsHistoryLength') ?? 0;
    if (history < 0 || history > INT_MAX) {
      throw job.fault(
        'job_machine_attrs_history_length',
        `job_machine_attrs_history_length=${history} is out of bounds 0 to ${INT_MAX}`,
      );
    }
    const lease = draft.literalNumber('JobLeaseDuration') ?? 0;
    if (lease > 0 && lease < SHORTEST_LEASE) {
      job.warn('JobLeaseDuration less than 20 seconds is not allowed, using 20 instead', 'job_lease_duration');
      job.setInt('JobLeaseDuration', SHORTEST_LEASE);
    }
    if (job.kind.universe === UNIVERSE.scheduler && draft.has('DeferralTime')) {
      throw job.fault('deferral_time', `${deferredBy(job)} does not work for scheduler universe jobs.`, [
        'Consider submitting this job using the local universe, instead.',
      ]);
    }
    if (draft.has('OutputDestination') && draft.has('OutputDirectory')) {
      throw job.fault(
        'output_directory',
        'You cannot use both output_destination and output_directory in the same submit file',
      );
    }
  },
};
