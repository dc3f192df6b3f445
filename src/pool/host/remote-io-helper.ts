import type { AttrTexts } from '../../job/attrs.ts';
import { quoted } from '../../job/values.ts';
import { probeProgram } from './probe-program.ts';

/** A program of native/, and whether it works on this machine. */
export interface NativeHelper {
  /** Its path; `undefined` if it does not work here. */
  readonly program: string | undefined;
  readonly ad: AttrTexts;
}

/** Looks for gryphus-remote-io in these directories, and whether it works here. */
export function findRemoteIo(...dirs: readonly string[]): NativeHelper {
  const probed = probeProgram('gryphus-remote-io', dirs);
  if (probed.program !== undefined) return { program: probed.program, ad: { HasRemoteIO: 'true' } };
  return { program: undefined, ad: { HasRemoteIO: 'false', HasRemoteIOReason: quoted(probed.reason) } };
}
