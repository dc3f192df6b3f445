import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** A directory is looked at again after this time, in milliseconds. */
const FRESH_MS = 10_000;
const MOST = 1000;

const run = promisify(execFile);
const seen = new Map<string, { readonly answer: Promise<boolean>; readonly at: number }>();

/**
 * Whether a file made in a directory may get more from it than its owner's group and the umask's mode: a set-group-ID
 * bit, or an access control list, which `ls` shows as `+`. A link to a file made elsewhere would not have these. True if
 * that cannot be found out.
 */
export function inherits(directory: string): Promise<boolean> {
  const known = seen.get(directory);
  if (known && performance.now() - known.at < FRESH_MS) return known.answer;
  const answer = run('ls', ['-ldn', '--', directory], { env: { ...process.env, LC_ALL: 'C' } }).then(
    ({ stdout }) => !/^d.{5}[x-].{3}[ .]/.test(stdout),
    () => true,
  );
  if (seen.size > MOST) seen.clear();
  seen.set(directory, { answer, at: performance.now() });
  return answer;
}
