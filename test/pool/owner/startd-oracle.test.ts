import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { POLICIES, POLICY_MACROS, type PolicyTexts } from '../../../src/config/owner-policies.ts';
import type { AttemptKey } from '../../../src/job/ids.ts';
import { MACHINE_LIFE } from '../../../src/pool/owner/machine-life.ts';
import { Policy } from '../../../src/pool/owner/policy.ts';
import { OwnerControl } from '../../../src/pool/worker/owner-control.ts';
import { Run } from '../../../src/pool/worker/run.ts';
import { type Condor, skipWithoutCondor, startCondor } from '../../sites/condor.ts';
import { until } from '../../agent/agent.ts';
import { SLOW } from '../../slow.ts';
import { PLACE, SIZE, SPEC } from './model-station.ts';

/** What a job does when it is asked to end. */
type Job = 'obeys' | 'ignores';

interface Scenario {
  readonly name: string;
  readonly job: Job;
  /** Instead of those of the ready-made policy `hunter`, whose owner's idle time is `OwnerIdle` here. */
  readonly policy: Partial<PolicyTexts>;
  /** What the machine's ad says of its owner, one value after another. */
  readonly idle: readonly number[];
  /** The states and activities in which HTCondor 23.9's startd is after each, as recorded. */
  readonly seen: readonly (readonly string[])[];
}

const HUNTER: Partial<PolicyTexts> = {
  START: 'true',
  WANT_SUSPEND: 'true',
  SUSPEND: 'OwnerIdle < 60',
  CONTINUE: 'OwnerIdle >= 60',
  PREEMPT: 'Activity == "Suspended" && OwnerIdle < 0',
  WANT_VACATE: 'true',
  KILL: 'false',
  MaxJobRetirementTime: '0',
  MachineMaxVacateTime: '600',
};
const NO_SUSPEND: Partial<PolicyTexts> = { WANT_SUSPEND: 'false', PREEMPT: 'OwnerIdle < 0' };

const SCENARIOS: readonly Scenario[] = [
  {
    name: 'the owner comes, goes, comes again and stays',
    job: 'obeys',
    policy: {},
    idle: [0, 100, 0, -1],
    seen: [['Claimed/Suspended'], ['Claimed/Busy'], ['Claimed/Suspended'], ['Claimed/Retiring', 'Preempting/Vacating']],
  },
  {
    name: 'WANT_VACATE is false',
    job: 'obeys',
    policy: { WANT_VACATE: 'false' },
    idle: [0, -1],
    seen: [['Claimed/Suspended'], ['Claimed/Retiring', 'Preempting/Killing']],
  },
  {
    name: 'nothing is suspended',
    job: 'obeys',
    policy: NO_SUSPEND,
    idle: [0, -1],
    seen: [[], ['Claimed/Retiring', 'Preempting/Vacating']],
  },
  {
    name: 'a job is promised its time',
    job: 'obeys',
    policy: { ...NO_SUSPEND, MaxJobRetirementTime: '100000' },
    idle: [-1],
    seen: [['Claimed/Retiring']],
  },
  {
    name: 'nothing is suspended, nor asked',
    job: 'obeys',
    policy: { ...NO_SUSPEND, WANT_VACATE: 'false' },
    idle: [-1],
    seen: [['Claimed/Retiring', 'Preempting/Killing']],
  },
  {
    name: 'a job ignores that it is asked to end',
    job: 'ignores',
    policy: { KILL: 'OwnerIdle < -5' },
    idle: [0, -1, -10],
    seen: [['Claimed/Suspended'], ['Claimed/Retiring', 'Preempting/Vacating'], ['Preempting/Killing']],
  },
  {
    name: 'expressions are undefined or errors',
    job: 'obeys',
    policy: { SUSPEND: 'Nowhere < 60', PREEMPT: '"x" + 1', KILL: 'error' },
    idle: [0, -1],
    seen: [[], []],
  },
];

/** What our worker's policy does with a job. */
function ours({ policy: own, idle, job }: Scenario): string[][] {
  const dir = mkdtempSync(join(tmpdir(), 'oracle-'));
  let now = 1_000_000;
  let ad = { Requirements: 'START', OwnerIdle: '1000' };
  let seen: string[] = [];
  const run = new Run({ key: KEY, claim: 'c', size: SIZE, spec: SPEC, lease: 1e6 }, PLACE);
  run.phase = 'running';
  run.startedAt = now;
  const control = new OwnerControl({
    dir,
    boot: 'b',
    machine: {
      policy: new Policy({ ...POLICIES.always, ...HUNTER, ...own }),
      macros: POLICY_MACROS,
      get ad() {
        return ad;
      },
      off: () => undefined,
      offer: () => false,
      polling: 1,
      idleSources: new Set(),
    },
    runs: () => [run],
    jobOf: () => ({}),
    orders: {
      hold: (_, still) => (run.phase = still ? 'suspended' : 'running'),
      vacate: () => job === 'obeys' && (run.phase = 'ended'),
      kill: () => (run.phase = 'ended'),
      checkpoint: () => undefined,
    },
    sources: () => [],
    say: (message) => {
      if (message.t === 'slot') seen.push(`${message.state}/${message.activity}`);
    },
    announce: () => undefined,
    log: () => undefined,
    clock: () => now,
    load: () => ({ total: 0, own: 0 }),
  });
  try {
    const all: string[][] = [];
    for (let n = 0; n < 20; n++, now += 1) control.look();
    for (const value of idle) {
      seen = [];
      ad = { ...ad, OwnerIdle: String(value) };
      for (let n = 0; n < 20; n++, now += 1) control.look();
      all.push(seen);
    }
    return all;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** After this time the startd has done all that it will do, in milliseconds. */
const SETTLES_MS = 6000;
/** A suspended job of ours does not retire, as it would run meanwhile: docs/owner.md. */
function unretired(step: readonly string[], before: string | undefined): readonly string[] {
  return before === 'Claimed/Suspended' ? step.filter((one) => one !== 'Claimed/Retiring') : step;
}

const KEY: AttemptKey = 'oracle.1.0.1';
const SHOWN = new Set(Object.values(MACHINE_LIFE).map(({ shows }) => shows.join('/')));

describe('the policy of a machine', () => {
  it.each(SCENARIOS)('does what HTCondor’s startd was seen to do: $name', (scenario) => {
    expect(ours(scenario)).toEqual(scenario.seen.map((step, n) => unretired(step, scenario.seen[n - 1]?.at(-1))));
    for (const state of scenario.seen.flat()) expect(SHOWN).toContain(state);
  });
});

describe.skipIf(!SLOW || skipWithoutCondor())("HTCondor's startd", () => {
  let condor: Condor;
  beforeAll(async () => {
    condor = await startCondor({
      slots: 1,
      config: ['POLLING_INTERVAL = 1', 'CLAIM_WORKLIFE = 0', 'STARTD_DEBUG = D_FULLDEBUG'],
    });
  }, 180_000);
  afterAll(() => condor.stop());

  const log = () => readFileSync(join(condor.dir, 'log/StartLog'), 'utf8');

  /** The states and activities that a dynamic slot entered, from a position in the log. */
  function entered(from: number, before: string): string[] {
    let [state = '', activity = ''] = before.split('/');
    const all = log()
      .slice(from)
      .split('\n')
      .flatMap((line) => {
        const [, what, , to = ''] =
          /slot1_\d+[^:]*: Changing (state and activity|state|activity): (\S+) -> (\S+)/.exec(line) ?? [];
        if (what === undefined || to === 'Delete') return [];
        if (what === 'state and activity') [state = '', activity = ''] = to.split('/');
        else if (what === 'state') state = to;
        else activity = to;
        return [`${state}/${activity}`];
      });
    // What follows is no longer the job's slot.
    const over = all.findIndex((one) => one.startsWith('Owner/') || one.startsWith('Unclaimed/'));
    return over < 0 ? all : all.slice(0, over);
  }

  it.each(SCENARIOS)(
    'does what was recorded: $name',
    async ({ policy, idle, seen, job }) => {
      const texts = { ...HUNTER, ...policy };
      const set = (value: number) =>
        condor.configure(
          ...Object.entries(texts).map(([name, text]) => `${name} = ${text}`),
          'STARTD_ATTRS = $(STARTD_ATTRS) OwnerIdle',
          `OwnerIdle = ${value}`,
        );
      set(1000);
      const from = log().length;
      const trap = job === 'obeys' ? "trap 'exit 0' TERM" : "trap '' TERM";
      const file = join(condor.dir, 'job.sub');
      const text = `executable = /bin/sh\ntransfer_executable = false\narguments = "-c '${trap.replaceAll("'", "''")}; while :; do sleep 0.2; done'"\nlog = ${condor.dir}/spool/job.log\nqueue\n`;
      writeFileSync(file, text);
      condor.run('condor_submit', file);
      await until('its start', () => /slot1_\d+[^\n]*Idle -> Busy/.test(log().slice(from)) || undefined, 90_000);
      const all: string[][] = [];
      let last = 'Claimed/Busy';
      for (const value of idle) {
        const at = log().length;
        set(value);
        // Several times its polling interval: there is no event that says that nothing more follows.
        await delay(SETTLES_MS);
        const there = entered(at, last);
        last = there.at(-1) ?? last;
        all.push(there);
      }
      condor.run('condor_rm', '-all');
      await until('the end of the job', () => {
        const left = condor.run('condor_q', '-af', 'ClusterId') + condor.run('condor_status', '-af', 'Name');
        return left.trim().startsWith('slot1@') && !left.includes('slot1_') ? true : undefined;
      });
      expect(all).toEqual(seen);
    },
    180_000,
  );
});
