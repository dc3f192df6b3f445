/**
 * The life of a slot on a machine that has an owner: HTCondor's states and activities. As in the life of a job, the
 * state carries the order, not the arrow: a worker that takes over reads the state and carries out its order again.
 */
export type SlotState =
  | 'owner'
  | 'unclaimed'
  | 'matched'
  | 'claimed'
  | 'busy'
  | 'suspended'
  | 'retiring'
  | 'vacating'
  | 'killing'
  | 'draining'
  | 'drained';

/** What the worker does in a state. */
export type SlotOrder = 'refuse' | 'offer' | 'run' | 'stop' | 'ask-to-end' | 'kill';

/** What happens to a slot without its policy being asked. */
export type SlotEvent =
  | 'match' // the central manager has granted it to a job
  | 'claim' // the worker accepts the match
  | 'start' // a job starts
  | 'end' // the job has ended
  | 'release'; // the claim is given back

/** How the owner took the machine out of the pool. */
export type Off = 'now' | 'graceful' | 'peaceful';

/** The truth of the policy's expressions, with HTCondor's rules for undefined ones already applied. */
export interface Truths {
  readonly isOwner: boolean;
  readonly wantSuspend: boolean;
  readonly suspend: boolean;
  readonly continue: boolean;
  readonly preempt: boolean;
  readonly wantVacate: boolean;
  readonly kill: boolean;
}

/** Everything that the table looks at. */
export interface Facts extends Truths {
  readonly off: Off | undefined;
  /** PREEMPT was true before: the job has to leave, whatever the expression says now. */
  readonly mustLeave: boolean;
  /** The job has run for as long as MaxJobRetirementTime promises it. */
  readonly retired: boolean;
  /** It was asked to end MachineMaxVacateTime ago. */
  readonly vacateOver: boolean;
  /** No job is left on the machine. */
  readonly empty: boolean;
}

/** A machine that nobody uses and on which no job runs. */
export const QUIET: Facts = {
  isOwner: false,
  wantSuspend: false,
  suspend: false,
  continue: true,
  preempt: false,
  wantVacate: true,
  kill: false,
  off: undefined,
  mustLeave: false,
  retired: true,
  vacateOver: false,
  empty: true,
};

/** The conditions by the names under which the docs show them. */
export const CONDITIONS = {
  IS_OWNER: (f) => f.isOwner,
  'not IS_OWNER': (f) => !f.isOwner,
  'WANT_SUSPEND and SUSPEND': (f) => f.wantSuspend && f.suspend,
  CONTINUE: (f) => f.continue && !(f.wantSuspend && f.suspend),
  'PREEMPT without WANT_SUSPEND': (f) => (f.preempt && !f.wantSuspend) || f.mustLeave,
  'PREEMPT and WANT_VACATE': (f) => f.preempt && f.wantVacate,
  'PREEMPT without WANT_VACATE': (f) => f.preempt && !f.wantVacate,
  'retirement over and WANT_VACATE': (f) => f.retired && f.wantVacate && f.off !== 'peaceful',
  'retirement over without WANT_VACATE': (f) => f.retired && !f.wantVacate && f.off !== 'peaceful',
  'KILL or MachineMaxVacateTime over': (f) => f.kill || f.vacateOver,
  off: (f) => f.off !== undefined,
  'off --now': (f) => f.off === 'now',
  'off --graceful': (f) => f.off === 'graceful',
  'off --peaceful': (f) => f.off === 'peaceful',
  on: (f) => f.off === undefined,
  'no job left': (f) => f.empty,
} as const satisfies Readonly<Record<string, (facts: Facts) => boolean>>;

export type Condition = keyof typeof CONDITIONS;

export interface SlotRow {
  readonly shows: readonly [state: string, activity: string];
  readonly does: SlotOrder;
  /** Looked at in this order at each look; the first that is true counts. */
  readonly looks: readonly (readonly [Condition, SlotState])[];
  readonly on: Readonly<Partial<Record<SlotEvent, SlotState>>>;
}

export const MACHINE_LIFE: Readonly<Record<SlotState, SlotRow>> = {
  owner: {
    shows: ['Owner', 'Idle'],
    does: 'refuse',
    looks: [
      ['off', 'draining'],
      ['not IS_OWNER', 'unclaimed'],
    ],
    on: {},
  },
  unclaimed: {
    shows: ['Unclaimed', 'Idle'],
    does: 'offer',
    looks: [
      ['off', 'draining'],
      ['IS_OWNER', 'owner'],
    ],
    on: { match: 'matched' },
  },
  matched: {
    shows: ['Matched', 'Idle'],
    does: 'offer',
    looks: [
      ['off', 'draining'],
      ['IS_OWNER', 'owner'],
    ],
    on: { claim: 'claimed', release: 'unclaimed' },
  },
  claimed: {
    shows: ['Claimed', 'Idle'],
    does: 'offer',
    looks: [
      ['off', 'draining'],
      ['IS_OWNER', 'owner'],
    ],
    on: { start: 'busy', release: 'unclaimed' },
  },
  busy: {
    shows: ['Claimed', 'Busy'],
    does: 'run',
    looks: [
      ['off --now', 'killing'],
      ['off --graceful', 'vacating'],
      ['WANT_SUSPEND and SUSPEND', 'suspended'],
      ['off --peaceful', 'retiring'],
      ['PREEMPT without WANT_SUSPEND', 'retiring'],
    ],
    on: { end: 'claimed' },
  },
  suspended: {
    shows: ['Claimed', 'Suspended'],
    does: 'stop',
    looks: [
      ['off --now', 'killing'],
      ['off --graceful', 'vacating'],
      ['PREEMPT and WANT_VACATE', 'vacating'],
      ['PREEMPT without WANT_VACATE', 'killing'],
      ['CONTINUE', 'busy'],
    ],
    on: { end: 'claimed' },
  },
  retiring: {
    shows: ['Claimed', 'Retiring'],
    does: 'run',
    looks: [
      ['off --now', 'killing'],
      ['off --graceful', 'vacating'],
      ['WANT_SUSPEND and SUSPEND', 'suspended'],
      ['retirement over and WANT_VACATE', 'vacating'],
      ['retirement over without WANT_VACATE', 'killing'],
    ],
    on: { end: 'unclaimed' },
  },
  vacating: {
    shows: ['Preempting', 'Vacating'],
    does: 'ask-to-end',
    looks: [
      ['off --now', 'killing'],
      ['KILL or MachineMaxVacateTime over', 'killing'],
    ],
    on: { end: 'unclaimed' },
  },
  killing: { shows: ['Preempting', 'Killing'], does: 'kill', looks: [], on: { end: 'unclaimed' } },
  draining: {
    shows: ['Drained', 'Retiring'],
    does: 'refuse',
    looks: [
      ['on', 'owner'],
      ['no job left', 'drained'],
    ],
    on: {},
  },
  drained: { shows: ['Drained', 'Idle'], does: 'refuse', looks: [['on', 'owner']], on: {} },
};

export const SLOT_STATES = Object.keys(MACHINE_LIFE) as readonly SlotState[];

/** The state to which an event leads; `undefined` if it means nothing in this state. */
export function after(state: SlotState, event: SlotEvent): SlotState | undefined {
  return MACHINE_LIFE[state].on[event];
}

/**
 * The states passed through at one look, the last of which is where it stays. No state is entered twice, so that
 * expressions that contradict each other leave a slot where it came to rest first.
 */
export function look(state: SlotState, facts: Facts): readonly SlotState[] {
  const passed: SlotState[] = [];
  for (let at = state; ; ) {
    const to = MACHINE_LIFE[at].looks.find(([condition]) => CONDITIONS[condition](facts))?.[1];
    if (to === undefined || to === state || passed.includes(to)) return passed;
    passed.push(to);
    at = to;
  }
}
