import { POLICIES, POLICY_MACROS } from '../../../src/config/owner-policies.ts';
import type { AttemptKey } from '../../../src/job/ids.ts';
import type { Reading } from '../../../src/pool/owner/idle/source.ts';
import { Policy } from '../../../src/pool/owner/policy.ts';
import type { FromCentralManager, FromWorker, HeldAttempt, RunSpec } from '../../../src/pool/wire/wire.ts';
import type { AttemptPlace } from '../../../src/pool/worker/attempt-place.ts';
import { OwnerControl } from '../../../src/pool/worker/owner-control.ts';
import { Run } from '../../../src/pool/worker/run.ts';
import type { Ending } from '../../../src/site/contract.ts';

/** What a worker that dies at some point of its work throws. */
export class Died extends Error {}

/** The program of an attempt: it outlives the worker that started it. */
export interface Program {
  readonly key: AttemptKey;
  readonly claim: string;
  readonly startedAt: number;
  still: boolean;
  /** When it was asked to end. */
  asked: number | undefined;
  worked: number;
  ending: Ending | undefined;
}

export interface StationOptions {
  readonly name: string;
  readonly dir: string;
  readonly policy: keyof typeof POLICIES;
  readonly random: () => number;
  /** Unix seconds. */
  readonly clock: () => number;
  readonly say: (message: FromWorker) => void;
  /** How long the program of an attempt has to work, in seconds. */
  readonly workOf: (key: AttemptKey) => number;
  /** How likely the worker dies at each order. */
  readonly dies: number;
}

/** A program that saves its work when it is asked to end takes this long, in seconds. */
const SAVING = 3;

/** One machine with an owner, and a real policy; its programs and its disk outlive its workers. */
export class Station {
  readonly #options: StationOptions;
  readonly programs = new Map<AttemptKey, Program>();
  #runs = new Map<AttemptKey, Run>();
  control: OwnerControl | undefined;
  /** When the owner last pressed a key. */
  key = Number.NEGATIVE_INFINITY;

  constructor(options: StationOptions) {
    this.#options = options;
    this.open();
  }

  /** A worker starts: it finds what the one before left. */
  open(): void {
    const { dir, name, policy, clock, random, say, dies } = this.#options;
    const may = () => {
      if (random() < dies) throw new Died(name);
    };
    this.#runs = new Map([...this.programs.values()].map((program) => [program.key, this.#runOf(program, true)]));
    const orders = (order: (program: Program, run: Run) => void) => (run: Run) => {
      may();
      const program = this.programs.get(run.key);
      if (program && !program.ending) order(program, run);
      may();
    };
    const machine = {
      policy: new Policy(POLICIES[policy]),
      macros: { ...POLICY_MACROS, StartIdleTime: '120', ContinueIdleTime: '100' },
      ad: { Requirements: 'START' },
      off: () => undefined,
      offer: () => false,
      polling: 5,
      idleSources: new Set(['keys']),
    };
    const control = new OwnerControl({
      dir,
      boot: 'b',
      machine,
      runs: () => this.#runs.values(),
      jobOf: () => ({}),
      orders: {
        hold: (run, still) =>
          orders((program) => {
            program.still = still;
            run.phase = still ? 'suspended' : 'running';
            say({ t: still ? 'suspended' : 'resumed', key: run.key });
          })(run),
        vacate: orders((program) => {
          program.asked ??= clock();
          program.still = false;
        }),
        kill: orders((program) => this.#end(program, killed)),
        checkpoint: () => undefined,
      },
      sources: () => [{ name: 'keys', look: (at): Reading => ({ sees: true, idle: at - this.key, note: '' }) }],
      say,
      announce: () => undefined,
      log: () => undefined,
      clock,
      load: () => ({ total: 0, own: 0 }),
    });
    this.control = control;
    for (const run of this.#runs.values()) if (control.wasSuspended(run)) run.phase = 'suspended';
  }

  /** Its worker dies. */
  close(): void {
    this.control = undefined;
  }

  /** What a new connection reports. */
  held(): HeldAttempt[] {
    return [...this.#runs.values()].map((run) => run.view());
  }

  take(message: FromCentralManager): void {
    const { say, clock } = this.#options;
    if (!this.control) return;
    if (message.t === 'start') {
      const { key, claim } = message;
      if (this.programs.has(key)) return this.#tell(key);
      const no = this.control.refusal;
      if (no !== undefined) return say({ t: 'gone', key, why: 'claim', message: no });
      const program = { key, claim, startedAt: clock(), still: false, asked: undefined, worked: 0, ending: undefined };
      this.programs.set(key, program);
      this.#runs.set(key, this.#runOf(program, false));
      return this.#tell(key);
    }
    if (message.t === 'forget')
      for (const key of message.keys) {
        this.programs.delete(key);
        this.#runs.delete(key);
      }
  }

  /** A second passes. Returns the programs that worked in it. */
  tick(): Program[] {
    const at = this.#options.clock();
    const worked: Program[] = [];
    for (const program of this.programs.values()) {
      if (program.ending || program.still) continue;
      if (program.asked !== undefined && at - program.asked >= SAVING) this.#end(program, preempted(true));
      else if (program.asked === undefined) {
        program.worked += 1;
        worked.push(program);
        if (program.worked >= this.#options.workOf(program.key)) this.#end(program, { kind: 'exited', code: 0 });
      }
    }
    return worked;
  }

  /** What its worker, if it has one, then does. Throws if the worker dies of it. */
  look(): void {
    if (!this.control) return;
    for (const [key, run] of this.#runs) {
      const ending = this.programs.get(key)?.ending;
      if (ending && run.phase !== 'ended') {
        run.end(ending);
        this.#tell(key);
      }
    }
    this.control.look();
  }

  #end(program: Program, how: Ending['how']): void {
    program.ending ??= { how, startedAt: program.startedAt, endedAt: this.#options.clock() };
  }

  #tell(key: AttemptKey): void {
    const program = this.programs.get(key);
    if (program?.ending) this.#options.say({ t: 'ended', key, ending: program.ending, files: [] });
    else if (program) this.#options.say({ t: 'started', key, at: program.startedAt });
  }

  #runOf(program: Program, found: boolean): Run {
    const { key, claim, startedAt, ending } = program;
    const run = new Run({ key, claim, size: SIZE, spec: SPEC, lease: 1e6 }, PLACE);
    run.phase = ending ? 'ended' : 'running';
    run.startedAt = startedAt;
    run.ending = ending;
    run.found = found;
    return run;
  }
}

export const SIZE = { cpus: 1, memoryMb: 100, diskKb: 0, gpus: 0 };
export const SPEC: RunSpec = {
  executable: { kind: 'there', path: '/bin/true' },
  args: [],
  env: {},
  inputs: [],
  joinStderr: false,
};

export const PLACE: AttemptPlace = {
  work: '/nonexistent',
  stdin: '/nonexistent',
  stream: () => '/nonexistent',
  size: () => 0,
  startedAt: () => undefined,
  exit: () => undefined,
  decide: () => undefined,
  undecide: () => undefined,
  decided: () => undefined,
  noteMemory: () => undefined,
  memory: () => 0,
  noteGroup: () => undefined,
  group: () => undefined,
  said: () => '',
  remove: () => undefined,
  swept: () => undefined,
};

const preempted = (yielded: boolean): Ending['how'] => ({
  kind: 'by-site',
  cause: 'preempted',
  message: 'its owner is back',
  ...(yielded ? { yielded: true } : {}),
});
const killed = preempted(false);
