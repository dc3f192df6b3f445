import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** What the probe of a program of native/ printed, or why the program does not work on this machine: a sentence. */
export type Probed =
  | { readonly program: string; readonly said: string }
  | { readonly program?: undefined; readonly reason: string };

const PROBE_MS = 10_000;

/** Looks for a program of native/ in these directories, and lets it try what it does on a small program of its own. */
export function probeProgram(name: string, dirs: readonly string[]): Probed {
  const program = dirs.map((dir) => join(dir, name)).find((path) => existsSync(path));
  if (program === undefined) return { reason: `${name} is not beside the worker` };
  const { status, stdout, stderr, error } = spawnSync(program, ['probe'], { encoding: 'utf8', timeout: PROBE_MS });
  if (status === 0) return { program, said: stdout.trim() };
  if (error && 'code' in error && error.code === 'EACCES')
    return { reason: `${program} may not be executed: its directory is mounted noexec` };
  if (error && 'code' in error && error.code === 'ENOEXEC')
    return { reason: `${program} is for another processor than this one, which is ${process.arch}` };
  return { reason: sentence(stderr ?? '', name) || (error?.message ?? 'its probe failed') };
}

/** The last sentence that the program said, without its name. */
export function sentence(said: string, name: string): string {
  const last = said.trim().split('\n').at(-1) ?? '';
  return last.startsWith(`${name}: `) ? last.slice(name.length + 2) : last;
}
