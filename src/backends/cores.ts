import type { Capacity } from '../site/contract.ts';

/** `FREE ALL`, as most shell halves print it; anything else is unknown. */
export function coresOf(line: string): Capacity | undefined {
  const [, free, all] = /^(\d+) (\d+)$/.exec(line) ?? [];
  return free === undefined ? undefined : { cpus: Number(all), freeCpus: Number(free) };
}
