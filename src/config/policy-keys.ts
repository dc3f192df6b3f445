import { expression, interval, oneOf, someOf, texts } from './kinds.ts';
import { machineAttributes } from './machine-kinds.ts';
import {
  POLICIES,
  POLICY_EXPRESSIONS,
  POLICY_NAMES,
  type PolicyExpression,
  type PolicyTexts,
} from './owner-policies.ts';
import { entry, type Table, type Values } from './table.ts';

/** The sources of signs of the owner. */
export const IDLE_SOURCES = ['terminals', 'X11', 'logind', 'interrupts', 'input', 'ssh'] as const;

const own = (doc: string) => entry(expression, undefined, `A ClassAd expression that replaces the policy's: ${doc}`);

/** The keys that set a machine's policy, in `config.toml` after `pool.`, and in the file of the machine's root. */
export const POLICY_KEYS = {
  policy: entry(
    oneOf(POLICY_NAMES),
    'always',
    "When jobs run on this machine: `always`; `desktop` (HTCondor's: when the owner has been away for 15 min; suspended when the owner returns, vacated 10 min later); `hunter` (vacated 5 min later); `hunter-kill` (killed at once); `dedicated` (always; prefers the dedicated scheduler's jobs). See [owner.md](owner.md).",
  ),
  polling_interval: entry(
    interval,
    '5s',
    "How often the worker evaluates its policy (POLLING_INTERVAL); while a job runs, the owner's return is noticed within a second.",
  ),
  start: own('which jobs this machine accepts (START).'),
  is_owner: own(
    'whether the owner is using the machine, so that it accepts no jobs at all (IS_OWNER); default: `START =?= false`.',
  ),
  want_suspend: own('whether a job is suspended before it is preempted (WANT_SUSPEND).'),
  suspend: own('when a job is suspended (SUSPEND).'),
  continue: own('when a suspended job continues (CONTINUE).'),
  preempt: own('when a job must give up the machine (PREEMPT).'),
  want_vacate: own('whether a preempted job is asked to end before it is killed (WANT_VACATE).'),
  kill: own('when a job that was asked to end is killed (KILL).'),
  rank: own('which jobs this machine prefers (RANK).'),
  retirement: own(
    'for how many seconds a job may keep running before it is preempted (MaxJobRetirementTime; a job may request less).',
  ),
  max_vacate_time: own('how many seconds a job may take to end after it is asked to (MachineMaxVacateTime).'),
  periodic_checkpoint: own(
    'when a job with `want_checkpoint = true` is checkpointed, and one with `+WantCheckpointSignal = true` sent its checkpoint signal (PERIODIC_CHECKPOINT).',
  ),
  attributes: entry(
    machineAttributes,
    undefined,
    'A table of additional attributes of the machine (STARTD_ATTRS), including those that policies use, such as `StartIdleTime = 300`.',
  ),
  idle_sources: entry(
    someOf(IDLE_SOURCES),
    IDLE_SOURCES,
    'Where to look for signs of the owner; `gryphus pool idle` shows what each source sees.',
  ),
  ignore_terminals: entry(
    texts,
    [],
    'Terminals to ignore, such as `pts/3` or `ttyS*`, because a program reads them all the time. `!pts/4` makes an exception; the last matching entry counts.',
  ),
} as const satisfies Table;

export type PolicyKeyValues = Values<typeof POLICY_KEYS>;
/** As they are among the settings. */
type PoolPolicy = { readonly [K in keyof PolicyKeyValues as `pool.${K}`]: PolicyKeyValues[K] };

const KEYS = Object.keys(POLICY_KEYS) as (keyof PolicyKeyValues)[];

const KEY_OF: Readonly<Record<PolicyExpression, keyof PolicyKeyValues>> = {
  START: 'start',
  IS_OWNER: 'is_owner',
  WANT_SUSPEND: 'want_suspend',
  SUSPEND: 'suspend',
  CONTINUE: 'continue',
  PREEMPT: 'preempt',
  WANT_VACATE: 'want_vacate',
  KILL: 'kill',
  RANK: 'rank',
  PERIODIC_CHECKPOINT: 'periodic_checkpoint',
  MaxJobRetirementTime: 'retirement',
  MachineMaxVacateTime: 'max_vacate_time',
};

/** The expressions that a table of these keys gives instead of its policy's. */
export function ownExpressions(values: PolicyKeyValues): Partial<PolicyTexts> {
  return Object.fromEntries(
    POLICY_EXPRESSIONS.flatMap((name) => {
      const text = values[KEY_OF[name]];
      return typeof text === 'string' ? [[name, text]] : [];
    }),
  );
}

/** The expressions in force: a ready-made policy with these instead of some of its own. */
export function policyTexts(name: string | undefined, instead: Partial<PolicyTexts>): PolicyTexts {
  const found = POLICY_NAMES.find((one) => one === name) ?? 'always';
  return { ...POLICIES[found], ...instead };
}

type Prefixed<P extends string, T extends Table> = { readonly [K in keyof T & string as `${P}.${K}`]: T[K] };

/** The keys of a table under a common first word. */
export function prefixed<P extends string, T extends Table>(prefix: P, table: T): Prefixed<P, T> {
  return Object.fromEntries(Object.entries(table).map(([key, value]) => [`${prefix}.${key}`, value])) as Prefixed<P, T>;
}

/** What `settings` say of the policy of this machine. */
export function policyValues(settings: PoolPolicy): PolicyKeyValues {
  return Object.fromEntries(KEYS.map((key) => [key, settings[`pool.${key}`]])) as unknown as PolicyKeyValues;
}
