import type { Capacity } from '../site/contract.ts';

/** `FREE ALL`, as most shell halves say it; what is not of this form is not known. */
export function coresOf(line: string): Capacity | undefined {
  const [, free, all] = /^(\d+) (\d+)$/.exec(line) ?? [];
  return free === undefined ? undefined : { cpus: Number(all), freeCpus: Number(free) };
}
