import { accessSync, constants } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import { endText, runQuietly } from '../util/run-quietly.ts';
import type { Message } from './messages.ts';

export type HookEnd = { readonly ok: true } | { readonly ok: false; readonly message: string };

const HOOK_MS = 30_000;

/**
 * Runs the user's command for alarms (`/bin/sh -c`): the text on its standard input, subject and kind in
 * GRYPHUS_SUBJECT and GRYPHUS_KIND. Its output is dropped. Never rejects; a failing hook stops nothing.
 */
export async function runHook(command: string, message: Message, timeoutMs = HOOK_MS): Promise<HookEnd> {
  const end = await runQuietly(['/bin/sh', '-c', command], {
    timeoutMs,
    stdin: message.body,
    env: { GRYPHUS_SUBJECT: message.subject, GRYPHUS_KIND: message.kind },
  });
  if (end.how === 'exited' && end.code === 0) return { ok: true };
  return { ok: false, message: `The alarm command ${endText(end, timeoutMs)}.` };
}

/** A desktop notification by notify-send; the result says if that, or the desktop, is missing. */
export async function notifyDesktop(message: Message, path = process.env['PATH'] ?? ''): Promise<HookEnd> {
  const program = findProgram('notify-send', path);
  if (program === undefined) {
    return { ok: false, message: 'notify-send is not installed (Debian: apt install libnotify-bin).' };
  }
  const urgency = `--urgency=${message.urgent ? 'critical' : 'normal'}`;
  const end = await runQuietly(
    [program, '--app-name=Gryphus', urgency, '--', message.subject, escapeMarkup(message.body)],
    {
      timeoutMs: HOOK_MS,
    },
  );
  if (end.how === 'exited' && end.code === 0) return { ok: true };
  return { ok: false, message: `notify-send ${endText(end, HOOK_MS)}; is there a desktop session?` };
}

/** Notification servers read the body as simple HTML (Desktop Notifications Specification 1.2, "Markup"). */
function escapeMarkup(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function findProgram(name: string, path: string): string | undefined {
  for (const dir of path.split(delimiter).filter(isAbsolute)) {
    const candidate = join(dir, name);
    try {
      accessSync(candidate, constants.X_OK);
      return candidate;
    } catch {
      continue;
    }
  }
  return undefined;
}
