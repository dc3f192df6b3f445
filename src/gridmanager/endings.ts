import { quoted } from '../job/values.ts';
import type { Ending } from '../site/contract.ts';
import { SITE_CAUSES } from './site-causes.ts';

/** What the queue already says of the job's earlier attempts. */
export interface Before {
  /** Unix seconds at which the present attempt began to run, as far as we heard. */
  readonly startedAt: number | undefined;
  readonly wallClock: number;
  readonly userCpu: number;
  readonly systemCpu: number;
  readonly completions: number;
}

/**
 * A job's attributes once its program ended, as HTCondor names them. The ending is whole in them, so that what follows
 * (the policy's decision) needs the ad alone, also after a crash.
 */
export function endingAttributes(ending: Ending, before: Before, now: number): Record<string, string | null> {
  const wall = wallClock(ending, before, now);
  const user = ending.usage?.userCpuSeconds ?? 0;
  const system = ending.usage?.systemCpuSeconds ?? 0;
  return {
    ...statusAttributes(ending),
    RemoteWallClockTime: real(before.wallClock + wall),
    LastRemoteWallClockTime: real(wall),
    RemoteUserCpu: real(user),
    RemoteSysCpu: real(system),
    CumulativeRemoteUserCpu: real(before.userCpu + user),
    CumulativeRemoteSysCpu: real(before.systemCpu + system),
    ...(ending.usage?.maxRssKb === undefined
      ? {}
      : {
          ResidentSetSize: String(ending.usage.maxRssKb),
          MemoryUsage: String(Math.max(1, Math.ceil(ending.usage.maxRssKb / 1024))),
        }),
    ...(ending.usage?.diskKb === undefined ? {} : { DiskUsage: String(ending.usage.diskKb) }),
    ...(ending.host === undefined ? {} : { LastRemoteHost: quoted(ending.host) }),
    ...(ending.stdoutBytes === undefined ? {} : { GryphusStdoutBytes: String(ending.stdoutBytes) }),
    ...(ending.stderrBytes === undefined ? {} : { GryphusStderrBytes: String(ending.stderrBytes) }),
    JobFinishedHookDone: null,
    GridJobStatus: quoted('DONE'),
  };
}

/** How it ended. */
export function statusAttributes({ how, words }: Ending): Record<string, string | null> {
  switch (how.kind) {
    case 'exited':
      return {
        ExitBySignal: 'false',
        ExitCode: String(how.code),
        ExitStatus: String(how.code),
        ExitSignal: null,
        GryphusSiteCause: null,
        GryphusSiteWords: words === undefined ? null : quoted(words),
      };
    case 'signaled':
      return {
        ExitBySignal: 'true',
        ExitSignal: String(how.signal),
        ExitStatus: String(how.signal),
        ExitCode: null,
        GryphusSiteCause: null,
        GryphusSiteWords: words === undefined ? null : quoted(words),
      };
    case 'by-site':
      return {
        ExitBySignal: null,
        ExitCode: null,
        ExitSignal: null,
        GryphusSiteCause: quoted(how.cause),
        GryphusSiteWords: quoted(how.words === '' ? SITE_CAUSES[how.cause].says : how.words),
      };
  }
}

/** Seconds; by the site's own clock where it gave both ends, and never negative when a clock jumped. */
function wallClock(ending: Ending, before: Before, now: number): number {
  const started = ending.startedAt ?? before.startedAt;
  const ended = ending.endedAt ?? now;
  return started === undefined ? 0 : Math.max(0, ended - started);
}

function real(seconds: number): string {
  return Number.isInteger(seconds) ? seconds.toFixed(1) : String(seconds);
}
