import { lstatSync, statSync } from 'node:fs';
import { eachSecond } from './each-second.ts';

const ZONE = '/etc/localtime';
const LOOK_SECONDS = 60;

/**
 * Goes by the machine's time zone also when that changes, as on a journey: a process learns it only once. One that was
 * started with a zone of its own (TZ) keeps that.
 */
export function followTimeZone(): void {
  if (process.env['TZ'] !== undefined) return;
  let known = zoneFile();
  eachSecond(
    () => {
      const now = zoneFile();
      if (now === known) return;
      known = now;
      // Node looks again when the variable changes, also from nothing to nothing.
      delete process.env['TZ'];
    },
    { every: LOOK_SECONDS },
  );
}

/** Which file it is now; it may be a link. */
function zoneFile(): string {
  return [lstatSync, statSync]
    .map((look) => look(ZONE, { throwIfNoEntry: false }))
    .map((found) => (found ? `${found.dev} ${found.ino} ${found.ctimeMs}` : ''))
    .join();
}
