import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readAdLine } from '../../job/ad-lines.ts';
import type { AttrTexts } from '../../job/attrs.ts';
import { AD_FILES } from './ad-files.ts';
import type { Run } from './run.ts';

/** The job's own ad: of an earlier worker's run, the copy in its sandbox. */
export function jobAdOf(run: Run): AttrTexts {
  const { received } = run;
  try {
    const text = received
      ? received.kind.with(received.start.ad ?? {})
      : readFileSync(join(run.dir.work, AD_FILES.job), 'utf8');
    return Object.fromEntries(
      text.split('\n').flatMap((line) => {
        const attribute = readAdLine(line);
        return attribute === undefined ? [] : [attribute];
      }),
    );
  } catch {
    return {};
  }
}
