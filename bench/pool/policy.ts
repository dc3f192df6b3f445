/*
 * What one evaluation of a policy costs: the worker's own control of a machine, with all sources of signs of an owner on
 * this machine, without a job and with two.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { POLICIES, POLICY_MACROS, type PolicyName } from '../../src/config/owner-policies.ts';
import { IDLE_SOURCES } from '../../src/config/policy-keys.ts';
import type { AttemptKey } from '../../src/job/ids.ts';
import { machineAd } from '../../src/pool/host/machine.ts';
import { allSources } from '../../src/pool/owner/idle/sources.ts';
import { Policy } from '../../src/pool/owner/policy.ts';
import type { AttemptPlace } from '../../src/pool/worker/attempt-place.ts';
import { OwnerControl } from '../../src/pool/worker/owner-control.ts';
import { Run } from '../../src/pool/worker/run.ts';

const POLLING = 5;
const SIZE = { cpus: 2, memoryMb: 1000, diskKb: 1e6, gpus: 0 };

/** Milliseconds of processor time. */
export interface Cost {
  readonly evaluation: number;
  /** A look at the sources alone, each second while a job runs. */
  readonly glance: number;
}

/** The mean of `times` evaluations, each 5 s of its clock, with a glance in each second in between. */
export function costOf(policy: PolicyName, jobs: number, times: number): Cost {
  const dir = mkdtempSync(join(tmpdir(), 'gryphus-bench-'));
  let now = 1e6;
  const runs = Array.from({ length: jobs }, (_, n) => runOf(n));
  const absent = { StartIdleTime: '-1', KeyboardBusy: 'KeyboardIdle < 0', HighLoad: '1000', BackgroundLoad: '1000' };
  const control = new OwnerControl({
    dir,
    boot: 'b',
    machine: {
      policy: new Policy(POLICIES[policy]),
      macros: { ...POLICY_MACROS, ...absent },
      ad: machineAd('bench', SIZE, {}),
      off: () => undefined,
      offer: () => false,
      polling: POLLING,
      idleSources: new Set(IDLE_SOURCES),
    },
    runs: () => runs,
    jobOf: () => ({ Owner: '"a"', RequestMemory: '100', JobPrio: '0' }),
    orders: { hold: stop, vacate: stop, kill: stop, checkpoint: () => false },
    sources: (changed) => allSources(changed, process.env, { ignored: () => [], isOurs: () => false }),
    say: () => undefined,
    announce: () => undefined,
    log: () => undefined,
    clock: () => now,
  });
  const spent = { evaluation: 0, glance: 0 };
  const look = (seconds: number, what: keyof typeof spent | undefined) => {
    now += seconds;
    const before = process.cpuUsage();
    control.look();
    const { user, system } = process.cpuUsage(before);
    if (what !== undefined) spent[what] += (user + system) / 1000;
  };
  const warm = Math.ceil(times / 4);
  for (let n = -warm; n < times; n++) {
    look(1, n < 0 ? undefined : 'evaluation');
    for (let second = 1; second < POLLING; second++) look(1, n < 0 ? undefined : 'glance');
  }
  control.close();
  rmSync(dir, { recursive: true, force: true });
  return { evaluation: spent.evaluation / times, glance: spent.glance / times / (POLLING - 1) };
}

function stop(): never {
  throw new Error('the owner of this machine counts as absent');
}

function runOf(n: number): Run {
  const key = `bench.${n}.0.1` as AttemptKey;
  const spec = {
    executable: { kind: 'there', path: '/bin/true' },
    args: [],
    env: {},
    inputs: [],
    joinStderr: false,
  } as const;
  const run = new Run(
    { key, claim: key, size: SIZE, spec: { ...spec, vacateSeconds: 20 }, lease: 60, kind: 'k' } as never,
    {} as AttemptPlace,
  );
  run.phase = 'running';
  run.startedAt = 1e6;
  return run;
}
