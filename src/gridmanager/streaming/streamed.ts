import { sharesHome } from '../../config/sites.ts';
import type { Attrs } from '../../job/attrs.ts';
import type { AttemptKey } from '../../job/ids.ts';
import { isParallel } from '../../job/parallel-node.ts';
import { readBoolean } from '../../job/values.ts';
import type { JobRecord } from '../../queue/api.ts';
import { askedFor } from '../../staging/asked-for.ts';
import type { SiteContext } from '../context.ts';
import { destination, type JobFiles, jobFiles } from '../files.ts';
import { givenNames } from '../given.ts';
import type { GrownFile } from './followed-files.ts';
import type { Growing, Source } from './growing.ts';

const WISH = { stdout: 'StreamOut', stderr: 'StreamErr' } as const;

/**
 * The streams that are to grow at their destination while the job runs (`stream_output`, `stream_error`): absolute paths
 * or URLs. None of a parallel job, whose nodes write at the same time.
 */
export function streamed(ad: Attrs): ReadonlyMap<Source, string> {
  const found = new Map<Source, string>();
  if (isParallel(ad)) return found;
  const files = jobFiles(ad, true);
  for (const kind of ['stdout', 'stderr'] as const) {
    const to = files[kind];
    if (to === undefined || readBoolean(ad, WISH[kind]) !== true) continue;
    // The site joins two streams that go to one file.
    if (kind === 'stdout' || to !== files.stdout) found.set({ kind }, to);
  }
  return found;
}

/**
 * Which of a site's names are of files that the job streams (`stream_results`): what it was given is not, and no site is
 * trusted to name only what was asked for.
 */
export async function isStreamed(
  { spool }: Pick<SiteContext, 'spool'>,
  { id, attempt }: Pick<JobRecord, 'id' | 'attempt'>,
  files: Pick<JobFiles, 'inputs' | 'patterns'>,
): Promise<(name: string) => boolean> {
  const given = await givenNames(files, await spool.checkpoints.filesFor(id, attempt));
  const asked = askedFor({ outputs: [], given, patterns: files.patterns });
  return (name) => asked(name) === name;
}

/** A file that grows where it is to be at the job's end. */
export function growingFile(
  { record }: Pick<SiteContext, 'record'>,
  key: AttemptKey,
  { id, attempt, attrs }: JobRecord,
  { name, version }: GrownFile,
): Growing {
  const files = jobFiles(attrs, sharesHome(record));
  const to = destination(files, name);
  const base = to.startsWith(`${files.outputDirectory}/`) ? files.outputDirectory : files.iwd;
  return { key, id, attempt, of: { kind: 'output', name }, version, attrs, to, base };
}
