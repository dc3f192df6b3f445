import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { AttrTexts } from '../../job/attrs.ts';
import { quoted } from '../../job/values.ts';
import { sentence } from './checkpoint-helper.ts';

/** A program of native/, and whether it works on this machine. */
export interface NativeHelper {
  /** Its path; `undefined` if it does not work here. */
  readonly program: string | undefined;
  readonly ad: AttrTexts;
}

const PROBE_MS = 10_000;

/** Looks for gryphus-remote-io in these directories, and lets it answer a call of a small program of its own. */
export function findRemoteIo(...dirs: readonly string[]): NativeHelper {
  const program = dirs.map((dir) => join(dir, 'gryphus-remote-io')).find((path) => existsSync(path));
  if (program === undefined) return without('gryphus-remote-io is not beside the worker');
  const { status, stderr, error } = spawnSync(program, ['probe'], { encoding: 'utf8', timeout: PROBE_MS });
  if (status === 0) return { program, ad: { HasRemoteIO: 'true' } };
  if (error && 'code' in error && error.code === 'EACCES')
    return without(`${program} may not be executed: its directory is mounted noexec`);
  return without(sentence(stderr ?? '', 'gryphus-remote-io') || (error?.message ?? 'its probe failed'));
}

function without(reason: string): NativeHelper {
  return { program: undefined, ad: { HasRemoteIO: 'false', HasRemoteIOReason: quoted(reason) } };
}
