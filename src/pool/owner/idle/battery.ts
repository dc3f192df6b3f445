import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Whether the machine runs on its battery: it has one that is discharging, and no supply that is on line. `undefined`:
 * it has no battery.
 */
export function onBattery(dir = '/sys/class/power_supply'): boolean | undefined {
  const supplies = namesIn(dir).map((name) => ({
    type: word(join(dir, name, 'type')),
    scope: word(join(dir, name, 'scope')),
    status: word(join(dir, name, 'status')),
    online: word(join(dir, name, 'online')),
  }));
  // A mouse has a battery too.
  const batteries = supplies.filter(({ type, scope }) => type === 'Battery' && scope !== 'Device');
  if (batteries.length === 0) return undefined;
  if (supplies.some(({ type, online }) => type !== 'Battery' && online === '1')) return false;
  return batteries.some(({ status }) => status === 'Discharging');
}

function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}

function word(path: string): string {
  try {
    return readFileSync(path, 'latin1').trim();
  } catch {
    return '';
  }
}
