/** The policy expressions of a machine, by HTCondor's names. */
export const POLICY_EXPRESSIONS = [
  'START',
  'IS_OWNER',
  'WANT_SUSPEND',
  'SUSPEND',
  'CONTINUE',
  'PREEMPT',
  'WANT_VACATE',
  'KILL',
  'RANK',
  'PERIODIC_CHECKPOINT',
  'MaxJobRetirementTime',
  'MachineMaxVacateTime',
] as const;
export type PolicyExpression = (typeof POLICY_EXPRESSIONS)[number];
export type PolicyTexts = Readonly<Record<PolicyExpression, string>>;

/**
 * What HTCondor's configuration has as macros, in seconds and units of load. They are attributes of the machine, so
 * that every expression can name them and `pool.attributes` can change them.
 */
export const POLICY_MACROS: Readonly<Record<string, string>> = {
  StartIdleTime: '900',
  ContinueIdleTime: '300',
  MaxSuspendTime: '600',
  BackgroundLoad: '0.3',
  HighLoad: '0.5',
  NonCondorLoadAvg: 'LoadAvg - CondorLoadAvg',
  CpuBusy: 'NonCondorLoadAvg >= HighLoad',
  CpuIdle: 'NonCondorLoadAvg <= BackgroundLoad',
  KeyboardBusy: 'KeyboardIdle < 60',
  MachineBusy: 'CpuBusy || KeyboardBusy',
  ActivityTimer: 'MyCurrentTime - EnteredCurrentActivity',
  StateTimer: 'MyCurrentTime - EnteredCurrentState',
  ActivationTimer: 'MyCurrentTime - (JobStart ?: MyCurrentTime)',
  LastCkpt: 'MyCurrentTime - (LastPeriodicCheckpoint ?: JobStart ?: MyCurrentTime)',
};

/** Jobs run whatever happens on the machine. */
const always: PolicyTexts = {
  START: 'true',
  IS_OWNER: 'START =?= false',
  WANT_SUSPEND: 'false',
  SUSPEND: 'false',
  CONTINUE: 'true',
  PREEMPT: 'false',
  WANT_VACATE: 'true',
  KILL: 'false',
  RANK: '0.0',
  PERIODIC_CHECKPOINT: 'false',
  MaxJobRetirementTime: '0',
  MachineMaxVacateTime: '600',
};

const IDLE = 'KeyboardIdle > StartIdleTime && !(OnBattery ?: false)';

/** The ready-made policies. */
export const POLICIES = {
  always,
  /** HTCondor's `use POLICY : Desktop`. */
  desktop: {
    ...always,
    START: `(CpuIdle || (State =!= "Unclaimed" && State =!= "Owner")) && ${IDLE}`,
    WANT_SUSPEND: 'true',
    SUSPEND: 'KeyboardBusy || (CpuBusyTime > 120 && ActivationTimer > 90)',
    CONTINUE: 'CpuIdle && ActivityTimer > 10 && KeyboardIdle > ContinueIdleTime',
    PREEMPT: 'Activity == "Suspended" && ActivityTimer > MaxSuspendTime',
  },
  /**
   * Litzkow, Livny, Mutka: Condor, a hunter of idle workstations (1988), section 2: stopped at once, and moved if the
   * owner is still there five minutes later.
   */
  hunter: {
    ...always,
    START: `(CpuIdle || (State =!= "Unclaimed" && State =!= "Owner")) && ${IDLE}`,
    WANT_SUSPEND: 'true',
    SUSPEND: 'KeyboardBusy || CpuBusyTime > 30',
    CONTINUE: '!KeyboardBusy && CpuIdle',
    PREEMPT: 'Activity == "Suspended" && ActivityTimer >= 300',
  },
  /** The same paper, section 4: jobs checkpoint now and then, and are killed when the owner comes back. */
  'hunter-kill': {
    ...always,
    START: `(CpuIdle || (State =!= "Unclaimed" && State =!= "Owner")) && ${IDLE}`,
    PREEMPT: 'KeyboardBusy || CpuBusyTime > 30',
    WANT_VACATE: 'false',
    PERIODIC_CHECKPOINT: 'LastCkpt > 1800',
  },
  /** HTCondor's configuration of a machine that belongs to a dedicated scheduler, whose jobs it prefers. */
  dedicated: {
    ...always,
    WANT_VACATE: 'false',
    RANK: 'TARGET.Scheduler =?= MY.DedicatedScheduler && MY.DedicatedScheduler =!= undefined',
  },
} as const satisfies Readonly<Record<string, PolicyTexts>>;

export type PolicyName = keyof typeof POLICIES;
export const POLICY_NAMES = Object.keys(POLICIES) as readonly PolicyName[];
