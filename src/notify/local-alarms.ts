import type { Settings } from '../config/settings.ts';
import { type HookEnd, notifyDesktop, runHook } from './hook.ts';
import type { Message } from './messages.ts';

/** Starts each configured alarm other than mail. */
export function localAlarms(settings: Settings, message: Message): readonly (readonly [string, Promise<HookEnd>])[] {
  const hook = settings['alarms.hook'];
  return [
    ...(hook === undefined ? [] : [['hook', runHook(hook, message)] as const]),
    ...(settings['alarms.desktop'] ? [['desktop', notifyDesktop(message)] as const] : []),
  ];
}
