import { InputDevices } from './input-devices.ts';
import { Interrupts } from './interrupts.ts';
import { Logind } from './logind.ts';
import { Logins } from './logins.ts';
import type { IdleSource } from './source.ts';
import { Terminals, type TerminalsOptions } from './terminals.ts';
import { X11 } from './x11.ts';

/** All sources of this machine. `changed`: called when one of them hears of activity between two looks. */
export function allSources(
  changed: () => void,
  env: NodeJS.ProcessEnv,
  terminals: Pick<TerminalsOptions, 'ignored' | 'isOurs'>,
): IdleSource[] {
  return [
    new Terminals(terminals),
    new X11(changed, env),
    new Logind(changed),
    new Interrupts(),
    new InputDevices(),
    new Logins(),
  ];
}
