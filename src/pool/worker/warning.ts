import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AttrTexts } from '../../job/attrs.ts';
import { inAd, readString } from '../../job/values.ts';
import { startTimer } from '../../util/long-timer.ts';
import { parentOf, processesOf, signal } from '../host/processes.ts';
import { AttemptDir } from './attempt-dir.ts';
import type { Run } from './run.ts';

const ATTRIBUTE = 'GryphusSignal';

/** The signal that a run wants some time before its limit (sbatch's `--signal`), also if an earlier worker started it. */
export function warnBefore(run: Run, limitSeconds: number, ranMs: number): void {
  const [, shell, name, seconds] = /^(B:)?(SIG[A-Z0-9]+)@(\d+)$/.exec(run.record.warning ?? '') ?? [];
  if (name === undefined) return;
  const left = (limitSeconds - Number(seconds)) * 1000 - ranMs;
  // Of a run that this worker found, only what is on disk tells whether it has been sent.
  if (left < 0 && run.found && (!(run.dir instanceof AttemptDir) || existsSync(sentFile(run.dir)))) return;
  const send = () => {
    if (run.phase === 'ended' || run.stopping) return;
    if (run.dir instanceof AttemptDir) noteSent(run.dir);
    for (const pid of receivers(run, shell !== undefined)) signal(pid, name as NodeJS.Signals);
  };
  startTimer(Math.max(0, left), send, (timer) => void run.timers.push(timer));
}

/** What a job's own attributes, or those of its kind, ask for. */
export function warningOf(own: AttrTexts | undefined, kind: AttrTexts | undefined): string | undefined {
  const text = own?.[ATTRIBUTE] ?? kind?.[ATTRIBUTE] ?? undefined;
  return text === undefined ? undefined : readString(inAd({ [ATTRIBUTE]: text }), ATTRIBUTE);
}

/** Its script, or all that this has started. The script's parent, a child of the run's shell, waits for it. */
function receivers(run: Run, script: boolean): readonly number[] {
  const all = processesOf(new Set([run.key])).map(({ pid }) => pid);
  const waiters = new Set(all.filter((pid) => parentOf(pid) === run.shell?.pid));
  const scripts = all.filter((pid) => waiters.has(parentOf(pid) ?? 0));
  if (script) return scripts;
  return all.filter((pid) => !waiters.has(pid) && !scripts.includes(pid));
}

function sentFile(dir: AttemptDir): string {
  return join(dir.path, 'warned');
}

function noteSent(dir: AttemptDir): void {
  try {
    writeFileSync(sentFile(dir), '', { mode: 0o600 });
  } catch {
    // No space left: after a crash of the worker it may be sent again.
  }
}
