import { GryphusError } from '../errors.ts';
import { oneLine } from '../util/plain-text.ts';

/** How long a login shell may take to run a command, in milliseconds; start files that load modules take many seconds. */
export const START_MS = 60_000;

/**
 * The result of `started`, or after `limitMs` a 'timeout' that quotes what the login shell said; `giveUp` is called
 * first. Without this limit, a login shell that hangs or prints forever would look like a command that takes long.
 */
export async function startedInTime<T>(
  started: Promise<T>,
  how: {
    readonly label: string;
    readonly limitMs: number;
    readonly said: () => string;
    readonly giveUp: () => void;
  },
): Promise<T> {
  const { label, limitMs, said, giveUp } = how;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const message = oneLine(said().trim().slice(-300));
      const what = `${label} does not answer: its login shell ran no command within ${limitMs / 1000} s`;
      giveUp();
      reject(
        new GryphusError('timeout', `${what}${message === '' ? '' : `; it said: ${message}`}.`, {
          suggestions: [`Check that this works by hand: ssh ${label} /bin/sh -c true`],
        }),
      );
    }, limitMs);
  });
  try {
    return await Promise.race([started, late]);
  } finally {
    clearTimeout(timer);
  }
}
