import type { MacroTable } from './macros.ts';
import type { Expander } from './expand.ts';
import { integerOf } from './calculate.ts';
import { badInput } from './fault.ts';

/** The limits of late materialization; an absent one means no limit. */
export interface LateMaterialization {
  /** How many of the cluster's jobs may be in the queue at once. */
  readonly maxMaterialize?: number;
  /** How many of the cluster's idle jobs may be in the queue at once. */
  readonly maxIdle?: number;
}

const INT_MAX = 2_147_483_647n;

function limit(names: readonly string[], macros: MacroTable, expander: Expander): number | undefined {
  for (const name of names) {
    const raw = macros.lookup(name);
    const text = raw === undefined ? '' : expander.expand(raw);
    if (text === '') continue;
    const value = integerOf(text);
    if (value === undefined || value >= INT_MAX || value < -INT_MAX) {
      throw badInput(macros.find(name)?.place, `${name}=${text} is invalid, must eval to an integer.`);
    }
    return Number(value);
  }
  return undefined;
}

/** Whether jobs are made only as earlier ones leave: `max_materialize`, `max_idle`, or at the caller's request. */
export function lateMaterialization(
  macros: MacroTable,
  expander: Expander,
  asked: boolean,
): LateMaterialization | undefined {
  const most = limit(['max_materialize', 'JobMaterializeLimit'], macros, expander);
  const idle = limit(['max_idle', 'JobMaterializeMaxIdle', 'materialize_max_idle'], macros, expander);
  if (most === undefined && idle === undefined) return asked ? {} : undefined;
  return {
    ...(most !== undefined && most > 0 ? { maxMaterialize: most } : {}),
    ...(idle === undefined ? {} : { maxIdle: idle }),
  };
}
