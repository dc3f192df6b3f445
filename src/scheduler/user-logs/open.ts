import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { daemonsOnDisk, noteDaemon } from '../../config/daemon-files.ts';
import type { Paths } from '../../config/paths.ts';
import { userLogsOwed } from '../../notify/messages.ts';
import type { Kv } from '../../queue/api.ts';
import { isAlive, processIdentity } from '../../util/process-identity.ts';
import type { Alarms } from '../alarms.ts';
import { LogJournal } from './journal.ts';
import { reportOwed } from '../../queue/owed-logs.ts';
import { UserLogs } from './user-logs.ts';
import { WriterProcess } from './writer.ts';

const WRITER = 'log-writer';
/** Time limit of one call on a user's log, milliseconds. */
const LIMIT_MS = 4000;
const REPORT_MS = 500;
/** The user is alerted if a log cannot be written for this long, milliseconds. */
const ALARM_MS = 600_000;

interface Surroundings {
  readonly paths: Paths;
  readonly kv: Kv;
  readonly alarms: Pick<Alarms, 'raise'>;
  readonly keepForMs: () => number;
  readonly log: (message: string, facts?: object) => void;
}

/**
 * Opens the user logs of this state directory, for its one Scheduler. Text left over from an earlier Scheduler is
 * written soon.
 */
export async function openUserLogs({ paths, kv, alarms, keepForMs, log }: Surroundings): Promise<UserLogs> {
  await endLeftWriter(paths);
  let reporting: NodeJS.Timeout | undefined;
  let reported: ReturnType<UserLogs['owed']> | undefined;
  let alarmed: number | undefined;
  const report = async () => {
    reporting = undefined;
    const owed = logs.owed();
    if (!isDeepStrictEqual(owed, reported)) await reportOwed(kv, owed);
    reported = owed;
    const [oldest] = owed.logs;
    if (!oldest) alarmed = undefined;
    if (!oldest || alarmed !== undefined || Date.now() - oldest.since < ALARM_MS) return;
    alarmed = Math.floor(oldest.since / 1000);
    await alarms.raise(userLogsOwed({ ...oldest, since: alarmed, count: owed.count }), alarmed);
  };
  const logs = new UserLogs({
    journal: await LogJournal.open(join(paths.stateDir, 'user-logs.journal')),
    writer: new WriterProcess({
      program: fileURLToPath(new URL('./writer-main.js', import.meta.url)),
      limitMs: LIMIT_MS,
      onStart: (pid) => noteDaemon(paths, WRITER, { ...processIdentity(pid), since: Date.now() }),
    }),
    keepForMs,
    onTrouble: (path, error) => log('a user log cannot be written', { path, error }),
    onOwed: () => {
      // If the queue is unavailable, the next round reports again.
      reporting ??= setTimeout(() => void report().catch(() => undefined), REPORT_MS).unref();
    },
  });
  await reportOwed(kv, logs.owed());
  return logs;
}

/**
 * Kills the writer process of an earlier Scheduler: it exits by itself unless it hangs, but two writers would write the
 * same text.
 */
async function endLeftWriter(paths: Paths): Promise<void> {
  const left = daemonsOnDisk(paths).find(({ name }) => name === WRITER);
  if (!left) return;
  for (let tries = 0; isAlive(left) && tries < 100; tries++) {
    try {
      process.kill(left.pid, 'SIGKILL');
    } catch {
      // It exited before the signal.
    }
    await sleep(20);
  }
}
