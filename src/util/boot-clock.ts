import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';

/**
 * Milliseconds since the machine was started, by the clock that goes on while the machine is suspended (CLOCK_BOOTTIME);
 * `performance.now()` and timers (CLOCK_MONOTONIC) stand still then. No setting of the time changes either.
 */
export function sinceBootMs(): number {
  return uptime() * 1000;
}

let boot: string | undefined;

/** Changes with each boot of the machine, which no process outlives; '' if unknown. */
export function bootId(): string {
  boot ??= readBoot();
  return boot;
}

function readBoot(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}
