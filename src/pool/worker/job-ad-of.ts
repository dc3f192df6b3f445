import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readAdLine } from '../../job/ad-lines.ts';
import type { AttrTexts } from '../../job/attrs.ts';
import { AD_FILES } from './ad-files.ts';
import type { Run } from './run.ts';

/** The job's own ad: of an earlier worker's run, the copy in its sandbox. */
export function jobAdOf(run: Run): AttrTexts {
  const { received } = run;
  try {
    const text = received ? received.kind.with(received.start.ad ?? {}) : plainText(join(run.dir.work, AD_FILES.job));
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

/** Bytes. */
const MOST = 16 << 20;

/** The job may have put anything in the place of its file: a pipe to wait at, a link, something endless. */
function plainText(path: string): string {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const found = fstatSync(fd);
    return found.isFile() && found.size <= MOST ? readFileSync(fd, 'utf8') : '';
  } finally {
    closeSync(fd);
  }
}
