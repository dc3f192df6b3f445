import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { AttrTexts } from '../../job/attrs.ts';
import { quoted } from '../../job/values.ts';

/** The program of native/, and whether it works on this machine. */
export interface CheckpointHelper {
  /** Its path; `undefined` if jobs cannot be checkpointed here. */
  readonly program: string | undefined;
  /** What images made here need, as in the machine's ad (CheckpointPlatform); '' without a program. */
  readonly platform: string;
  readonly ad: AttrTexts;
}

const PROBE_MS = 10_000;

/** Looks for the helper in these directories, and lets it checkpoint and restore a small program of its own. */
export function findCheckpointHelper(...dirs: readonly string[]): CheckpointHelper {
  const program = dirs.map((dir) => join(dir, 'gryphus-helper')).find((path) => existsSync(path));
  if (program === undefined) return without('gryphus-helper is not beside the worker');
  const { status, stdout, stderr, error } = spawnSync(program, ['probe'], { encoding: 'utf8', timeout: PROBE_MS });
  if (status !== 0) return without(sentence(stderr) || (error?.message ?? 'its probe failed'));
  const platform = stdout.trim();
  return { program, platform, ad: { HasCheckpoint: 'true', CheckpointPlatform: quoted(platform) } };
}

/** A machine on which nothing is checkpointed, and why. */
export function without(reason: string): CheckpointHelper {
  const ad = { HasCheckpoint: 'false', HasCheckpointReason: quoted(reason) };
  return { program: undefined, platform: '', ad };
}

/** The last sentence that the helper said, without its name. */
export function sentence(said: string, name = 'gryphus-helper'): string {
  const last = said.trim().split('\n').at(-1) ?? '';
  return last.startsWith(`${name}: `) ? last.slice(name.length + 2) : last;
}
