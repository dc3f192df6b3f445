import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { CheckpointHelper } from '../../host/checkpoint-helper.ts';
import { sentence } from '../../host/probe-program.ts';
import { KEY_VARIABLE } from '../../host/processes.ts';
import {
  baseIn,
  type CheckpointEngine,
  type Dumped,
  type EngineJob,
  HELPER,
  imageOf,
  OURS,
  reportOf,
  unrestoredBy,
} from './engine.ts';

const SKIPS = OURS.flatMap((name) => ['--skip', name]);

/** Our own engine, native/: no privilege, and of a later image only what has changed. */
export function gryphusEngine(program: string, { platform }: Pick<CheckpointHelper, 'platform'>): CheckpointEngine {
  return {
    name: 'gryphus',
    platform,
    start: ({ args }, placed) => ({ ...placed, command: [program, 'run', placed.program, ...args] }),
    restore: ({ dir, key }, placed) => ({
      ...placed,
      command: [
        program,
        'restore',
        '--from',
        baseIn(dir),
        '--sandbox',
        dir.work,
        '--report',
        reportOf(dir),
        '--environment',
        `${KEY_VARIABLE}=${key}`,
        ...SKIPS,
      ],
    }),
    unrestored: unrestoredBy,
    dump: (job, waiter, kill) => dumped(program, dumpWords(job, waiter, kill)),
  };
}

function dumpWords({ dir }: EngineJob, waiter: number, kill: boolean): string[] {
  // The first is based on what it went on from, the others on the one before.
  const base = !existsSync(imageOf(dir)) && existsSync(baseIn(dir)) ? ['--base', baseIn(dir)] : [];
  return [
    'dump',
    '--below',
    String(waiter),
    '--sandbox',
    dir.work,
    '--to',
    imageOf(dir),
    ...base,
    '--stdin',
    dir.stdin,
    '--stdout',
    dir.stream('stdout'),
    '--stderr',
    dir.stream('stderr'),
    ...SKIPS,
    ...(kill ? ['--kill'] : []),
  ];
}

function dumped(program: string, args: readonly string[]): Promise<Dumped> {
  return new Promise((resolve) =>
    execFile(program, args, { encoding: 'utf8' }, (error, _, stderr) => {
      if (error === null) return resolve({});
      // What it was doing may have ended the job with it.
      if (error.signal) return resolve({ trouble: `${HELPER} was killed`, isBroken: true });
      return resolve({ trouble: sentence(stderr, HELPER) || error.message });
    }),
  );
}
