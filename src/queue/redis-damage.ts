import { spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { GryphusError } from '../errors.ts';
import { shellPath } from '../util/shell-quote.ts';
import { latestLog } from './redis-disk.ts';
import type { ServerPlace } from './redis-place.ts';

const FILES = 'appendonlydir';
const BAD =
  /Bad file format reading the append only file ([^\s:]+)|Unexpected end of file reading the append only file ([^\s:]+)/;
/** A snapshot of a later version, at the beginning of the file. */
const LATER = /Can't handle RDB format version/;

/** Since version 7 of Redis, the queue's file is a directory; an earlier server does not see it, and would begin an empty queue. */
const FIRST_WITH_DIRECTORY = 7;
const OWN_VERSION = /^(?:Redis|Valkey) server v=(\d+)(\S*)/;

/** Throws 'queue-unavailable' if the queue was written by a later Redis than this one, which would not notice. */
export function refuseLaterFile(program: string, { dir }: Pick<ServerPlace, 'dir'>): void {
  if (!existsSync(join(dir, FILES))) return;
  const { stdout } = spawnSync(program, ['--version'], { encoding: 'utf8', timeout: 10_000 });
  const [, major, rest] = OWN_VERSION.exec(stdout ?? '') ?? [];
  if (major === undefined || Number(major) >= FIRST_WITH_DIRECTORY) return;
  throw later(dir, `the one here (${program} is version ${major}${rest})`);
}

function later(dir: string, than: string): GryphusError {
  return new GryphusError(
    'queue-unavailable',
    `The queue in ${dir} was written by a later Redis or Valkey than ${than}. Nothing was changed.`,
    { suggestions: ['Name that one: GRYPHUS_REDIS_SERVER=PATH, or `gryphus config redis.server PATH`.'] },
  );
}

/** The error if the latest server ended because of its file, which it left as it was: what can be done, and what that would lose. */
export function damagedQueue({ log, dir }: Pick<ServerPlace, 'log' | 'dir'>): GryphusError | undefined {
  const said = latestLog(log);
  if (LATER.test(said)) return later(dir, 'the one here');
  const [, bad, ended] = BAD.exec(said) ?? [];
  const name = bad ?? ended;
  if (name === undefined) return undefined;
  const files = join(dir, FILES);
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
