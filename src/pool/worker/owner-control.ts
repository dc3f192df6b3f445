import { asError } from '../../errors.ts';
import { ClassAd } from '../../classad/api.ts';
import type { AttrTexts } from '../../job/attrs.ts';
import { quoted } from '../../job/values.ts';
import { adFrom } from '../wire/ads.ts';
import { onBattery } from '../owner/idle/battery.ts';
import { type MachineLoad, loadNow, OwnLoad } from '../owner/idle/load.ts';
import { IdleWatch, type Presence } from '../owner/idle/watch.ts';
import type { IdleSource } from '../owner/idle/source.ts';
import { CHANGING, type MachineNow, nowTexts, NOTHING, setNow } from '../owner/machine-attrs.ts';
import { type Facts, look, MACHINE_LIFE, QUIET, type SlotState } from '../owner/machine-life.ts';
import type { OwnerWord } from '../owner/owner-file.ts';
import type { PolicyScope } from '../owner/policy.ts';
import { clock, ownerReason } from '../owner/reason.ts';
import { readRecord, type SlotRecord, writeRecord } from '../owner/slot-records.ts';
import type { Run } from './run.ts';
import type { WorkerMachine } from './worker-machine.ts';
import type { FromWorker } from '../wire/wire.ts';

type Because = { readonly message: string; readonly by: 'owner' | 'policy' };

/** What the control asks the worker to do with a run. */
export interface Orders {
  /** Stops all its processes (`still`), or lets them go on if its user does not want it stopped. */
  readonly hold: (run: Run, still: boolean) => void;
  readonly vacate: (run: Run, because: Because, mostSeconds: number) => void;
  readonly kill: (run: Run, because: Because) => void;
  /** Has it checkpointed, if it wants that; then it is said why there is no checkpoint, or nothing if there is. */
  readonly checkpoint: (run: Run, answer: (trouble: string | undefined) => void) => void;
}

export interface OwnerControlOptions {
  readonly dir: string;
  readonly boot: string;
  readonly machine: Pick<WorkerMachine, 'policy' | 'macros' | 'ad' | 'off' | 'offer' | 'polling' | 'idleSources'>;
  readonly runs: () => Iterable<Run>;
  /** The ad of the job. */
  readonly jobOf: (run: Run) => AttrTexts;
  readonly orders: Orders;
  readonly sources: (changed: () => void) => readonly IdleSource[];
  readonly say: (message: FromWorker) => void;
  /** The ad has changed in a way that others must know at once. */
  readonly announce: () => void;
  readonly log: (message: string) => void;
  /** Unix seconds, by a clock that cannot be set. */
  readonly clock: () => number;
  readonly load?: (own: number) => MachineLoad;
}

/** How often signs of the owner are looked for while a job runs, in seconds. */
const GLANCE = 1;
/** How often the changing part of the ad is measured, if the policy does not look at it, in seconds. */
const SELDOM = 30;
/** After how many seconds what could not be checkpointed is tried again. */
const AGAIN = 30;
/** The owner counts as present while the last sign is younger than this, in seconds. */
const PRESENT = 60;

/** The states in which the machine's own slot takes no job. */
const isClosed = (state: SlotState): boolean => MACHINE_LIFE[state].does === 'refuse';

/** Leaves the owner of the machine in control: asks the policy about each run, and has its orders carried out. */
export class OwnerControl {
  readonly #options: OwnerControlOptions;
  readonly #watch: IdleWatch;
  readonly #watchedSince: number;
  readonly #own = new OwnLoad();
  readonly #slots: Map<string, SlotRecord>;
  readonly #users: Set<string>;
  readonly #jobs = new WeakMap<Run, ClassAd>();
  /** Runs of an earlier worker whose orders were given again. */
  readonly #renewed = new WeakSet<Run>();
  /** From when on those that could not be checkpointed are told again. */
  readonly #again = new WeakMap<Run, number>();
  #machine: SlotRecord;
  #base:
    | { readonly ad: AttrTexts; readonly macros: string; readonly parsed: ClassAd; readonly uses: boolean }
    | undefined;
  #presence: Presence | undefined;
  #load: MachineLoad = { total: 0, own: 0 };
  #busySince: number | undefined;
  #presentSince: number | undefined;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #glancedAt = Number.NEGATIVE_INFINITY;
  #reason: string | undefined;
  #now: MachineNow | undefined;
  #hurry = false;
  #full = false;

  constructor(options: OwnerControlOptions) {
    this.#options = options;
    const { dir, boot } = options;
    const at = options.clock();
    const left = readRecord(dir, boot);
    this.#watchedSince = Math.min(at, left?.watchedSince ?? at);
    this.#slots = new Map(Object.entries(left?.slots ?? {}));
    this.#users = new Set(left?.byUser);
    this.#machine = { state: 'owner', enteredState: at, enteredActivity: at };
    this.#watch = new IdleWatch(
      options.sources(() => this.#hasten()),
      this.#watchedSince,
    );
  }

  /** Why no job is taken now, if so. */
  get refusal(): string | undefined {
    return isClosed(this.#machine.state) ? (this.#reason ?? 'its owner is using the machine') : undefined;
  }

  /** The changing attributes of the machine's ad. */
  ad(): AttrTexts {
    const { complaints } = this.#options.machine.policy;
    return {
      ...(this.#now ? nowTexts(this.#now) : {}),
      CpuBusy: String(this.#busySince !== undefined),
      GryphusOwner: this.#reason === undefined ? null : quoted(this.#reason),
      GryphusPolicyTrouble: complaints.length === 0 ? null : quoted(complaints.join('; ')),
    };
  }

  /** What the central manager has to know of the slots after it was away. */
  tellAll(): void {
    for (const [key, record] of this.#slots) if (record.state !== 'busy') this.#tell(key as Run['key'], record);
  }

  /** A run that an earlier worker left: whether it was suspended, by its owner or its user. */
  wasSuspended(run: Run): boolean {
    return this.#users.has(run.key) || this.#slots.get(run.key)?.state === 'suspended';
  }

  isHeldByOwner({ key }: Run): boolean {
    return this.#slots.get(key)?.state === 'suspended';
  }

  isHeldByUser({ key }: Run): boolean {
    return this.#users.has(key);
  }

  noteUser({ key }: Run, still: boolean): void {
    if (still) this.#users.add(key);
    else this.#users.delete(key);
    this.#save();
  }

  /** Looks at the machine when it is time. */
  look(): void {
    const at = this.#options.clock();
    const known = this.#base;
    const base = this.#baseNow();
    const { uses, parsed } = base;
    const busy = [...this.#options.runs()].some((run) => run.phase !== 'ended');
    const every = uses ? this.#options.machine.polling : SELDOM;
    const due = at - this.#lookedAt >= every || this.#hurry || at < this.#lookedAt || base !== known;
    const off = this.#options.machine.off(Date.now() / 1000);
    const told = (off !== undefined) !== (this.#machine.state === 'draining' || this.#machine.state === 'drained');
    if (!due && uses && busy && at - this.#glancedAt >= GLANCE) {
      this.#glancedAt = at;
      const before = this.#presence?.keyboard;
      this.#presence = this.#watch.look(at, this.#options.machine.idleSources);
      const { keyboard } = this.#presence;
      if (keyboard === undefined || (before !== undefined && keyboard >= before)) return this.#fresh(off);
    } else if (!due && !told && this.#machine.state !== 'draining') return this.#fresh(off);
    return this.#evaluate(at, parsed, off);
  }

  /** Runs that started since the last look have to be looked at soon. */
  #fresh(off: OwnerWord['off'] | undefined): void {
    const { uses, parsed } = this.#baseNow();
    if (!uses && !off) return;
    const unseen = [...this.#options.runs()].some((run) => run.phase === 'running' && !this.#slots.has(run.key));
    if (unseen) this.#evaluate(this.#options.clock(), parsed, off);
  }

  close(): void {
    this.#watch.close();
  }

  get presence(): Presence | undefined {
    return this.#presence;
  }

  #hasten(): void {
    this.#hurry = true;
    queueMicrotask(() => this.look());
  }

  #evaluate(at: number, parsed: ClassAd, off: OwnerWord['off'] | undefined): void {
    const { machine, runs } = this.#options;
    this.#hurry = false;
    this.#lookedAt = this.#glancedAt = at;
    this.#presence = this.#watch.look(at, this.#options.machine.idleSources);
    const all = [...runs()];
    const living = all.filter(({ phase }) => phase !== 'ended');
    const used = new Map(living.map(({ key, cpuSeconds, load }) => [key, { seconds: cpuSeconds, tasks: load }]));
    this.#load = (this.#options.load ?? loadNow)(this.#own.note(used, at));
    this.#trackPresence(at);
    const battery = onBattery();
    const my = this.#adAt(parsed, this.#machine, at, battery);
    this.#trackCpu(my, at);
    const isOwner = machine.policy.isOwner({ my: this.#adAt(parsed, this.#machine, at, battery), now: at });
    const facts: Facts = { ...QUIET, isOwner, off: off?.how, empty: all.every(({ phase }) => phase === 'ended') };
    const changed = this.#moveMachine(look(this.#machine.state, facts).at(-1), at);
    const ad = this.#adAt(parsed, this.#machine, at, battery);
    this.#reason = isClosed(this.#machine.state) ? this.#reasonNow(ad, off, changed) : undefined;
    const start = isClosed(this.#machine.state) ? 'false' : machine.policy.startText(ad, CHANGING, at);
    const offered = machine.offer(start);
    for (const run of all)
      if (run.phase === 'running' || run.phase === 'suspended') this.#ask(run, parsed, at, facts, battery);
    this.#forgetOthers(all);
    if (changed || offered) this.#options.announce();
  }

  #reasonNow(my: ClassAd, off: Parameters<typeof ownerReason>[0]['off'], changed: boolean): string {
    if (!changed && this.#reason !== undefined && !off && this.#presentSince !== undefined) return this.#reason;
    const { policy } = this.#options.machine;
    const { keyboard, by } = this.#presence ?? { keyboard: undefined, by: undefined };
    return ownerReason({ policy, my, now: this.#options.clock(), keyboard, by, presentSince: this.#presentSince, off });
  }

  #trackPresence(at: number): void {
    const { keyboard } = this.#presence ?? {};
    if (keyboard === undefined || keyboard >= PRESENT) this.#presentSince = undefined;
    else this.#presentSince ??= at - keyboard;
  }

  #trackCpu(my: ClassAd, at: number): void {
    if (!this.#options.machine.policy.isTrue('CpuBusy', { my, now: at })) this.#busySince = undefined;
    else this.#busySince ??= at;
  }

  /** Asks the policy about one run, and carries out what follows. */
  #ask(run: Run, parsed: ClassAd, at: number, machine: Facts, battery: boolean | undefined): void {
    const started = run.startedAt ?? at;
    const known = this.#slots.get(run.key);
    const record: SlotRecord = known ?? { state: 'busy', enteredState: started, enteredActivity: started };
    if (!known) this.#slots.set(run.key, record);
    const target = this.#jobAd(run);
    const my = this.#adAt(parsed, record, at, battery)
      .set('JobStart', Math.floor(started))
      .set('TotalJobRunTime', Math.floor(at - started))
      .set('TotalJobSuspendTime', Math.floor(record.suspended ?? 0));
    if (record.lastCheckpoint !== undefined) my.set('LastPeriodicCheckpoint', Math.floor(record.lastCheckpoint));
    const scope: PolicyScope = { my, target, now: at };
    const { policy } = this.#options.machine;
    const still = record.state === 'suspended' ? at - record.enteredActivity : 0;
    const truths = policy.truths(scope, machine.isOwner, still);
    const vacated = record.state === 'vacating' ? at - record.enteredActivity : 0;
    const facts: Facts = {
      ...truths,
      off: machine.off,
      empty: false,
      mustLeave: record.mustLeave === true,
      retired: at - started - (record.suspended ?? 0) >= this.#retirement(scope, target),
      vacateOver: vacated > 0 && vacated >= policy.vacateTime(scope),
    };
    const passed = look(record.state, facts);
    if (facts.preempt && passed.includes('retiring')) record.mustLeave = true;
    for (const to of passed) this.#move(run, record, to, at, scope);
    if (record.state === 'busy' && policy.wantsCheckpoint(scope)) this.#checkpoint(run, record, at);
    if (run.found && !this.#renewed.has(run)) this.#renew(run, record, scope, passed.length > 0);
  }

  #checkpoint(run: Run, record: SlotRecord, at: number): void {
    if (at < (this.#again.get(run) ?? at)) return;
    this.#again.set(run, at + AGAIN);
    this.#options.orders.checkpoint(run, (trouble) => {
      if (trouble !== undefined) return this.#options.log(`${run.key}: not checkpointed: ${trouble}`);
      this.#again.delete(run);
      record.lastCheckpoint = at;
      this.#save();
    });
  }

  /** An order that may not have been carried out before its worker died is given again. */
  #renew(run: Run, { state }: SlotRecord, scope: PolicyScope, moved: boolean): void {
    this.#renewed.add(run);
    if (moved) return;
    if (MACHINE_LIFE[state].does === 'run') this.#options.orders.hold(run, false);
    else this.#order(run, state, scope);
  }

  /** The job may ask for less than the machine promises. */
  #retirement({ my, now }: PolicyScope, target: ClassAd): number {
    const promised = this.#options.machine.policy.retirement({ my, target, now });
    const asked = this.#options.machine.policy.number('MaxJobRetirementTime', { my: target, target: my, now });
    return Math.min(promised, asked ?? promised);
  }

  #move(run: Run, record: SlotRecord, to: SlotState, at: number, scope: PolicyScope): void {
    const from = record.state;
    if (from === 'suspended') record.suspended = (record.suspended ?? 0) + (at - record.enteredActivity);
    if (MACHINE_LIFE[from].shows[0] !== MACHINE_LIFE[to].shows[0]) record.enteredState = at;
    record.enteredActivity = at;
    record.state = to;
    // On disk before the order: a worker that dies in between is followed by one that knows.
    this.#save();
    this.#options.log(`${run.key}: ${from} → ${to}`);
    if (MACHINE_LIFE[to].does !== 'run') this.#order(run, to, scope);
    else if (from === 'suspended') this.#options.orders.hold(run, false);
    this.#tell(run.key, record);
  }

  #order(run: Run, state: SlotState, scope: PolicyScope): void {
    const { orders, machine } = this.#options;
    const { does } = MACHINE_LIFE[state];
    if (does === 'stop') orders.hold(run, true);
    else if (does === 'ask-to-end') orders.vacate(run, this.#because(scope), machine.policy.vacateTime(scope));
    else if (does === 'kill') orders.kill(run, this.#because(scope));
  }

  #because({ now }: PolicyScope): Because {
    if (this.#options.machine.off(Date.now() / 1000))
      return { by: 'owner', message: 'the owner of its machine took it out of the pool' };
    if (this.#presentSince === undefined) return { by: 'policy', message: "its machine's policy preempted it" };
    const since = clock(Math.min(now, this.#presentSince));
    return { by: 'owner', message: `the owner of its machine is back since ${since}` };
  }

  #moveMachine(to: SlotState | undefined, at: number): boolean {
    if (to === undefined) return false;
    const from = this.#machine.state;
    const same = MACHINE_LIFE[from].shows[0] === MACHINE_LIFE[to].shows[0];
    this.#machine = { state: to, enteredState: same ? this.#machine.enteredState : at, enteredActivity: at };
    this.#options.log(`its machine: ${from} → ${to}`);
    return true;
  }

  #tell(key: Run['key'], { state, enteredState, enteredActivity }: SlotRecord): void {
    const [shown, activity] = MACHINE_LIFE[state].shows;
    this.#options.say({ t: 'slot', key, state: shown, activity, enteredState, enteredActivity });
  }

  #jobAd(run: Run): ClassAd {
    const known = this.#jobs.get(run);
    if (known) return known;
    const ad = adFrom(this.#options.jobOf(run));
    this.#jobs.set(run, ad);
    return ad;
  }

  #adAt(parsed: ClassAd, record: SlotRecord, at: number, battery: boolean | undefined): ClassAd {
    const [state, activity] = MACHINE_LIFE[record.state].shows;
    const now: MachineNow = {
      now: at,
      keyboard: this.#presence?.keyboard,
      console: this.#presence?.console,
      load: this.#load,
      cpuBusyTime: this.#busySince === undefined ? 0 : at - this.#busySince,
      onBattery: battery,
      state,
      activity,
      enteredState: record.enteredState,
      enteredActivity: record.enteredActivity,
    };
    if (record === this.#machine) this.#now = now;
    return setNow(new ClassAd().chainTo(parsed), now);
  }

  /** The constant part of the machine's ad, with what only the policy looks at, parsed once. */
  #baseNow(): { readonly parsed: ClassAd; readonly uses: boolean } {
    const { ad, macros, policy } = this.#options.machine;
    const text = JSON.stringify(macros);
    const known = this.#base;
    if (known?.ad === ad && known.macros === text) return known;
    const parsed = adFrom({ ...macros, ...ad, ...policy.texts });
    const names = policy.names(setNow(new ClassAd().chainTo(parsed), NOTHING));
    const uses = [...names].some((name) => CHANGING.has(name));
    this.#base = { ad, macros: text, parsed, uses };
    return this.#base;
  }

  #forgetOthers(all: readonly Run[]): void {
    const keys = new Set<string>(all.flatMap((run) => (run.phase === 'ended' ? [] : [run.key])));
    let gone = false;
    for (const which of [this.#slots, this.#users])
      for (const key of which.keys()) if (!keys.has(key)) gone = which.delete(key) || gone;
    if (gone) this.#save();
  }

  #save(): void {
    const { dir, boot, log } = this.#options;
    // What is at its beginning need not be known to the next worker.
    const slots = [...this.#slots].filter(
      ([, record]) => record.state !== 'busy' || record.mustLeave || record.suspended || record.lastCheckpoint,
    );
    try {
      writeRecord(dir, {
        boot,
        watchedSince: this.#watchedSince,
        slots: Object.fromEntries(slots),
        byUser: [...this.#users],
      });
      this.#full = false;
    } catch (thrown) {
      // The owner comes first, also on a full disk.
      if (!this.#full) log(`cannot record the states of its slots: ${asError(thrown).message}`);
      this.#full = true;
    }
  }
}
