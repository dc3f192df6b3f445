import type { Attrs } from '../../job/attrs.ts';
import { isParallel } from '../../job/parallel-node.ts';
import { readBoolean } from '../../job/values.ts';
import type { StreamName } from '../../staging/streams.ts';
import { jobFiles } from '../files.ts';

const WISH = { stdout: 'StreamOut', stderr: 'StreamErr' } as const;

/**
 * The streams that are to grow at their destination while the job runs (`stream_output`, `stream_error`): absolute paths
 * or URLs. None of a parallel job, whose nodes write at the same time.
 */
export function streamed(ad: Attrs): ReadonlyMap<StreamName, string> {
  const found = new Map<StreamName, string>();
  if (isParallel(ad)) return found;
  const files = jobFiles(ad, true);
  for (const stream of ['stdout', 'stderr'] as const) {
    const to = files[stream];
    if (to === undefined || readBoolean(ad, WISH[stream]) !== true) continue;
    // The site joins two streams that go to one file.
    if (stream === 'stdout' || to !== files.stdout) found.set(stream, to);
  }
  return found;
}
