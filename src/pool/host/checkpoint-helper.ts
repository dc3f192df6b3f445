import type { AttrTexts } from '../../job/attrs.ts';
import { quoted } from '../../job/values.ts';
import { probeProgram } from './probe-program.ts';
import type { NativeHelper } from './remote-io-helper.ts';

/** gryphus-helper, and whether it works on this machine. */
export interface CheckpointHelper extends NativeHelper {
  /** What images made here need, as in the machine's ad (CheckpointPlatform); '' without a program. */
  readonly platform: string;
}

/** Looks for the helper in these directories, and whether it works here. */
export function findCheckpointHelper(...dirs: readonly string[]): CheckpointHelper {
  const probed = probeProgram('gryphus-helper', dirs);
  if (probed.program === undefined) return without(probed.reason);
  const { program, said: platform } = probed;
  return { program, platform, ad: { HasCheckpoint: 'true', CheckpointPlatform: quoted(platform) } };
}

/** A machine on which nothing is checkpointed, and why. */
export function without(reason: string): CheckpointHelper {
  const ad: AttrTexts = { HasCheckpoint: 'false', HasCheckpointReason: quoted(reason) };
  return { program: undefined, platform: '', ad };
}
