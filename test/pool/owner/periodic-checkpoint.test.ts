import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { POLICIES, POLICY_MACROS } from '../../../src/config/owner-policies.ts';
import { Policy } from '../../../src/pool/owner/policy.ts';
import { OwnerControl } from '../../../src/pool/worker/owner-control.ts';
import { Run } from '../../../src/pool/worker/run.ts';
import { PLACE, SIZE, SPEC } from './model-station.ts';

let dir: string;
beforeEach(() => (dir = mkdtempSync(join(tmpdir(), 'periodic '))));
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** A job that began at 1000, with PERIODIC_CHECKPOINT `LastCkpt > 100`. Checkpoints before `since` fail. */
function station(since: number) {
  let now = 1000;
  const run = new Run({ key: 'machine.1.0.1', claim: 'c', size: SIZE, spec: SPEC, lease: 1e6 }, PLACE);
  run.phase = 'running';
  run.startedAt = now;
  const made: number[] = [];
  const failed: number[] = [];
  const log: string[] = [];
  const control = () =>
    new OwnerControl({
      dir,
      boot: 'b',
      machine: {
        policy: new Policy({ ...POLICIES.always, PERIODIC_CHECKPOINT: 'LastCkpt > 100' }),
        macros: POLICY_MACROS,
        ad: { Requirements: 'START' },
        off: () => undefined,
        offer: () => false,
        polling: 1,
        idleSources: new Set(),
      },
      runs: () => [run],
      jobOf: () => ({}),
      orders: {
        hold: () => undefined,
        vacate: () => undefined,
        kill: () => undefined,
        checkpoint: (_, done) => {
          (now < since ? failed : made).push(now);
          done(now < since ? 'file descriptor 7 is a socket' : undefined);
        },
      },
      sources: () => [],
      say: () => undefined,
      announce: () => undefined,
      log: (message) => log.push(message),
      clock: () => now,
      load: () => ({ total: 0, own: 0 }),
    });
  const goOn = (one: OwnerControl, until: number) => {
    for (; now <= until; now++) one.look();
  };
  return { control, goOn, made, failed, log };
}

it('checkpoints after each period, also if the worker is another one meanwhile', () => {
  const { control, goOn, made, failed } = station(0);
  goOn(control(), 1250);
  goOn(control(), 1420);
  expect({ made, failed }).toEqual({ made: [1101, 1202, 1303, 1404], failed: [] });
});

it('tries again after 30 s what could not be checkpointed, and says why not', () => {
  const { control, goOn, made, failed, log } = station(1150);
  goOn(control(), 1300);
  expect({ made, failed }).toEqual({ made: [1161, 1262], failed: [1101, 1131] });
  const reason = 'machine.1.0.1: not checkpointed: file descriptor 7 is a socket';
  expect(log.filter((line) => line.includes('not checkpointed'))).toEqual([reason, reason]);
});
