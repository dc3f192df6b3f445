import { CHIRP_CONFIG } from '../site/chirp.ts';
import type { FetchRequest } from '../site/contract.ts';
import { nameMatcher } from '../util/name-patterns.ts';
import { plainName } from '../util/plain-name.ts';

/** The directory, in the job's own, of the image from which it goes on (`want_checkpoint`): `image`, and its bases. */
export const CHECKPOINT_IMAGE = '.job.checkpoint';

/** The files of home that a job has there (`want_remote_io`), in its directory. */
export const REMOTE_IO_DIR = '.remote-io';

/** In a job's directory but not its results: the program's copy, its ads, its streams, its image. */
export const RESERVED: readonly string[] = [
  'condor_exec.exe',
  '.job.ad',
  '.machine.ad',
  CHIRP_CONFIG,
  '_condor_stdout',
  '_condor_stderr',
  CHECKPOINT_IMAGE,
  REMOTE_IO_DIR,
];

/**
 * Decides which of a site's offered files were requested: returns the name under which to keep such a file, `undefined`
 * for any other. A named output is a file, or a directory with everything below it. New files (`new`) are those at the
 * top that the job was not given. Patterns name others, also in directories. No site or worker is trusted to send only
 * what was requested (scp, CVE-2019-6111).
 */
export function askedFor({
  outputs,
  given = [],
  patterns = [],
}: Pick<FetchRequest, 'outputs' | 'given' | 'patterns'>): (offered: string) => string | undefined {
  const not = new Set([...given, ...RESERVED]);
  const named = nameMatcher(patterns);
  const matches = (name: string): boolean => named(name) && !RESERVED.includes(name.replace(/\/.*/s, ''));
  if (outputs === 'new') {
    return (offered) => {
      const name = plainName(offered);
      if (name === undefined || name === '' || not.has(name)) return undefined;
      return !name.includes('/') || matches(name) ? name : undefined;
    };
  }
  const wanted = new Set(outputs.flatMap((name) => plainName(name) ?? []));
  return (offered) => {
    const name = plainName(offered);
    if (name === undefined || name === '') return undefined;
    if (wanted.has('') || andAbove(name).some((one) => wanted.has(one))) return name;
    return matches(name) && !not.has(name) ? name : undefined;
  };
}

/** A name and its parent directories. */
function andAbove(name: string): string[] {
  const all = [name];
  for (let cut = name.lastIndexOf('/'); cut > 0; cut = name.lastIndexOf('/', cut - 1)) all.push(name.slice(0, cut));
  return all;
}
