import { POLICY_MACROS, type PolicyTexts } from '../../config/owner-policies.ts';
import { IDLE_SOURCES, policyTexts } from '../../config/policy-keys.ts';
import type { AttrTexts } from '../../job/attrs.ts';
import type { RootPolicy } from './root-policy.ts';
import type { WorkerConfig } from '../wire/worker-config.ts';

/**
 * The expressions in force on a machine. A policy that its root names is not to be undone expression by expression, so
 * it takes the place of all of the user's.
 */
export function textsInForce({ policy, start, rank }: WorkerConfig, root: RootPolicy | undefined): PolicyTexts {
  const mine = {
    ...(start === undefined ? {} : { START: start }),
    ...(rank === undefined ? {} : { RANK: rank }),
    ...policy?.expressions,
  };
  return policyTexts(root?.policy ?? policy?.name, {
    ...(root?.policy === undefined ? mine : {}),
    ...root?.expressions,
  });
}

/** What policies name as HTCondor's macros. */
export function macrosInForce({ attributes }: WorkerConfig, root: RootPolicy | undefined): AttrTexts {
  return { ...POLICY_MACROS, ...attributes, ...root?.attributes };
}

/** The names of the sources of signs of the owner that count. */
export function sourcesInForce({ idleSources }: WorkerConfig, root: RootPolicy | undefined): ReadonlySet<string> {
  return new Set(root?.idleSources ?? idleSources ?? IDLE_SOURCES);
}
