import { amountsBy, expressionsBy } from './kinds.ts';
import { POLICY_EXPRESSIONS } from './owner-policies.ts';

const RESOURCES: readonly string[] = ['cpus', 'memory', 'disk', 'gpus'];

/** What a worker finds out about its machine and itself, in lower case; nobody else can say it. */
const FOUND: ReadonlySet<string> = new Set([
  ...RESOURCES,
  ...RESOURCES.flatMap((name) => [`total${name}`, `detected${name}`]),
  'machineresources',
  'name',
  'mytype',
  'partitionableslot',
  'slotid',
  'slottype',
  'requirements',
  'withinresourcelimits',
  'state',
  'activity',
  'enteredcurrentstate',
  'enteredcurrentactivity',
  'mycurrenttime',
  'keyboardidle',
  'consoleidle',
  'loadavg',
  'totalloadavg',
  'condorloadavg',
  'totalcondorloadavg',
  'cpubusytime',
  'onbattery',
  'clockmin',
  'clockday',
  'freememorymb',
  'timetolive',
  'lastheardfrom',
]);
const POLICY: ReadonlySet<string> = new Set(POLICY_EXPRESSIONS.map((name) => name.toLowerCase()));

function refusal(name: string): string | undefined {
  const lower = name.toLowerCase();
  if (POLICY.has(lower)) return 'is an expression of the policy, which has a key of its own beside `policy`';
  return FOUND.has(lower) || lower.startsWith('gryphus') ? 'is found out by the worker itself' : undefined;
}

/** Attributes that a machine advertises besides those that its worker finds out. */
export const machineAttributes = expressionsBy(refusal);

/** Resources of a machine besides those that its worker finds out. */
export const machineResources = amountsBy((name) =>
  refusal(name) === undefined ? undefined : 'is an attribute of every machine, so it cannot be a resource of your own',
);
