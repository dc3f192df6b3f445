import { statSync } from 'node:fs';
import { join } from 'node:path';
import { GryphusError } from '../errors.ts';
import { shellPath } from '../util/shell-quote.ts';
import { latestLog } from './redis-disk.ts';
import type { ServerPlace } from './redis-place.ts';

const BAD =
  /Bad file format reading the append only file ([^\s:]+)|Unexpected end of file reading the append only file ([^\s:]+)/;

/** The error if the latest server ended because its file is damaged: nothing was changed, and what a repair would lose. */
export function damagedQueue({ log, dir }: Pick<ServerPlace, 'log' | 'dir'>): GryphusError | undefined {
  const [, bad, ended] = BAD.exec(latestLog(log)) ?? [];
  const name = bad ?? ended;
  if (name === undefined) return undefined;
  const files = join(dir, 'appendonlydir');
  const file = join(files, name);
  const bytes = statSync(file, { throwIfNoEntry: false })?.size;
  const size = bytes === undefined ? '' : ` (${bytes} bytes)`;
  const state = join(dir, '..');
  return new GryphusError(
    'queue-unavailable',
    `The queue's file ${file}${size} is damaged: Redis cannot read it. Nothing was changed.`,
    {
      suggestions: [
        `Keep a copy: cp -a ${shellPath(dir)} ${shellPath(`${dir}.damaged`)}`,
        `Cut it at the damage, which redis-check-aof shows: redis-check-aof --fix ${shellPath(join(files, 'appendonly.aof.manifest'))}`,
        'Then, gryphus up: it says which clusters are missing; what sites hold of them, gryphus recover brings back.',
        `Or use a backup: mv ${shellPath(state)} ${shellPath(`${state}.damaged`)}; gryphus restore FILE`,
      ],
    },
  );
}
