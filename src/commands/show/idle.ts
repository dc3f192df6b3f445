import type { PresenceView } from '../../index.ts';
import { tableLines } from './table.ts';
import type { Width } from './width.ts';

/** What each source of signs of the owner sees, and what follows. */
export function idleLines(view: PresenceView, width: Width): string[] {
  const rows = view.sources.map(({ source, sees, idle, note }) => [source, sees ? age(idle) : '-', note]);
  const battery = view.onBattery === undefined ? 'none' : view.onBattery ? 'in use' : 'not in use';
  return [
    ...tableLines(['Source', ' Idle', 'Sees'], rows, width),
    '',
    `KeyboardIdle ${view.keyboardIdle === undefined ? 'undefined: nothing here shows its owner' : age(view.keyboardIdle)}, ConsoleIdle ${view.consoleIdle === undefined ? 'undefined' : age(view.consoleIdle)}, battery: ${battery}`,
  ];
}

function age(seconds: number | undefined): string {
  if (seconds === undefined) return 'no sign';
  const all = Math.max(0, Math.floor(seconds));
  const two = (part: number) => String(part).padStart(2, '0');
  return `${Math.floor(all / 3600)}:${two(Math.floor(all / 60) % 60)}:${two(all % 60)}`;
}
