import type { Step } from '../maker.ts';
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

/** Values that are surely mistakes. */
export const mistakes: Step = {
  name: '(mistakes)',
  run(job) {
    const { draft } = job;
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
