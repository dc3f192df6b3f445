import { uptime } from 'node:os';

/**
 * Milliseconds since the machine was started, by the clock that goes on while the machine is suspended (CLOCK_BOOTTIME);
 * `performance.now()` and timers (CLOCK_MONOTONIC) stand still then. No setting of the time changes either.
 */
export function sinceBootMs(): number {
  return uptime() * 1000;
}
