import { CHECKPOINT_ENGINES, engineAttributes, engineNamed } from '../../job/checkpoint-engines.ts';
import type { References, Mentioned } from '../expressions.ts';
import { referencesOf } from '../expressions.ts';
import type { JobMaker, Step } from '../maker.ts';
import { platformClauses } from './requirements-platform.ts';
import { resourceClauses } from './requirements-resources.ts';
import { transferClause } from './requirements-transfer.ts';
import { deferredBy } from './deferral.ts';
import { UNIVERSE } from '../../job/universe.ts';

/** Names that always mean the job's own attribute in its requirements. */
const OWN = ['RequestMemory', 'VM_CkptMac', 'Requirements'];
const SCHEDD_INTERVAL = 300;

function deferralClauses(job: JobMaker): string[] {
  if (deferredBy(job) === undefined) return [];
  if (!job.draft.has('ScheddInterval')) job.setInt('ScheddInterval', SCHEDD_INTERVAL);
  const time =
    '(((time() + ScheddInterval) >= (DeferralTime - DeferralPrepTime)) && (time() < (DeferralTime + DeferralWindow)))';
  return job.kind.universe === UNIVERSE.local ? [time] : ['TARGET.HasJobDeferral', time];
}

/** `cuda_version = 12.1` becomes 12001 and a clause. */
function cudaClauses(job: JobMaker): string[] {
  const text = job.draft.string('CUDAVersion');
  if (text === undefined) return [];
  const found = /^(\d+)(?:\.(\d+))?$/.exec(text);
  if (!found) {
    throw job.fault(
      'cuda_version',
      "cuda_version must be of the form 'x' or 'x.y', where x and y are positive integers.",
    );
  }
  const major = Number(found[1]);
  const minor = found[2] === undefined ? undefined : Number(found[2]) % 100;
  job.setInt('CUDAVersion', minor === undefined ? (major < 1000 ? major * 1000 : major) : major * 1000 + minor);
  return ['CUDAVersion <= TARGET.CUDAMaxSupportedVersion'];
}

function refuseCircle(job: JobMaker, references: References, text: string): void {
  if (!references.own.has('requirements') && !references.other.has('requirements')) return;
  throw job.fault('requirements', `Requirements = ${text} Is Circular. Did you intend to use $(Requirements) ?`);
}

/** The job's engine has to be there; once there is an image, the job can go on only where it fits. */
function checkpointClauses(job: JobMaker): string[] {
  const [own] = CHECKPOINT_ENGINES;
  const name = engineNamed(job.draft.string('CheckpointEngine') ?? own) ?? own;
  const { platform } = engineAttributes(name);
  return [
    name === own ? 'TARGET.HasCheckpoint' : `stringListIMember("${name}", TARGET.CheckpointEngines)`,
    `(MY.LastCheckpointPlatform =?= undefined || TARGET.${platform} =?= MY.LastCheckpointPlatform)`,
  ];
}

function implied(job: JobMaker, spoken: Mentioned): string[] {
  return [
    ...platformClauses(job, spoken),
    ...resourceClauses(job, spoken),
    ...(job.draft.has('ToolDaemonCmd') && !spoken.of('HasTDP') ? ['TARGET.HasTDP'] : []),
    ...(job.draft.bool('EncryptExecuteDirectory') && !spoken.of('EncryptExecuteDirectory')
      ? ['TARGET.HasEncryptExecuteDirectory']
      : []),
    ...transferClause(job, spoken),
    ...deferralClauses(job),
    ...(job.draft.bool('WantFTOnCheckpoint') && !spoken.of('HasSelfCheckpointTransfers')
      ? ['TARGET.HasSelfCheckpointTransfers']
      : []),
    ...(job.draft.bool('WantCheckpoint') && !spoken.of('HasCheckpoint') ? checkpointClauses(job) : []),
    ...(job.draft.bool('WantRemoteIO') && !spoken.of('HasRemoteIO') ? ['TARGET.HasRemoteIO'] : []),
    ...(job.draft.has('StreamResults') && !spoken.of('HasStreamResults') ? ['TARGET.HasStreamResults'] : []),
    ...cudaClauses(job),
    ...(job.draft.bool('OCUWanted') ? ['TARGET.OCU =?= true'] : []),
  ];
}

/** The user's requirements and those implied by the rest of the description, joined by &&. */
export const requirements: Step = {
  name: 'requirements',
  run(job) {
    const written = job.param('requirements');
    const own = written === undefined ? [] : [`(${written})`];
    if (job.param('MY.Requirements') !== undefined) {
      if (written !== undefined) {
        job.warn(
          'Use of MY.Requirements or +Requirements  overrides requirements. You should remove one of these statements from ' +
            'your submit file.',
          'requirements',
        );
      }
      return;
    }
    if ((job.kind.universe === UNIVERSE.grid || job.gridType !== '') && job.gridType !== 'condor') {
      return job.setExpr('Requirements', own[0] ?? 'true', 'requirements');
    }
    const references = referencesOf(own[0] ?? 'true', OWN);
    if (!references) return job.setExpr('Requirements', own[0] ?? '', 'requirements');
    refuseCircle(job, references, own[0] ?? '');
    const spoken: Mentioned = { of: (attribute) => references.other.has(attribute.toLowerCase()) };
    job.setExpr('Requirements', [...own, ...implied(job, spoken)].join(' && '), 'requirements');
  },
};
