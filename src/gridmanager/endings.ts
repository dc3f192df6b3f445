import { quoted } from '../job/values.ts';
import type { Ending } from '../site/contract.ts';
import { sentence } from '../util/plain-text.ts';
import { SITE_CAUSES } from '../site/causes.ts';

/** What the queue already records about the job's earlier attempts. */
export interface Before {
  /** Unix seconds at which the current attempt started, as far as we know. */
  readonly startedAt: number | undefined;
  readonly wallClock: number;
  readonly userCpu: number;
  readonly systemCpu: number;
  readonly completions: number;
}

/** The largest number that HTCondor's user log readers accept. */
const MOST_SECONDS = 1e12;

/**
 * A job's attributes after its program ended, under HTCondor's names. They describe the ending completely, so the
 * policy decision that follows needs only the ad, even after a crash.
 */
export function endingAttributes(ending: Ending, before: Before, now: number): Record<string, string | null> {
  const wall = wallClock(ending, before, now);
  const user = credible(ending.usage?.userCpuSeconds);
  const system = credible(ending.usage?.systemCpuSeconds);
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

/** The attributes that say how the job ended. */
export function statusAttributes({ how, message }: Ending): Record<string, string | null> {
  switch (how.kind) {
    case 'exited':
      return {
        ExitBySignal: 'false',
        ExitCode: String(how.code),
        ExitStatus: String(how.code),
        ExitSignal: null,
        GryphusSiteCause: null,
        GryphusYielded: null,
        GryphusSiteWords: message === undefined ? null : quoted(sentence(message)),
      };
    case 'signaled':
      return {
        ExitBySignal: 'true',
        ExitSignal: String(how.signal),
        ExitStatus: String(how.signal),
        ExitCode: null,
        GryphusSiteCause: null,
        GryphusYielded: null,
        GryphusSiteWords: message === undefined ? null : quoted(sentence(message)),
      };
    case 'by-site':
      return {
        ExitBySignal: null,
        ExitCode: null,
        ExitSignal: null,
        GryphusSiteCause: quoted(how.cause),
        GryphusYielded: how.yielded === true ? 'true' : null,
        ...(how.platform === undefined ? {} : { LastCheckpointPlatform: quoted(how.platform) }),
        GryphusPreemptedBy: how.by === undefined ? null : quoted(how.by),
        GryphusSiteWords: quoted(how.message === '' ? SITE_CAUSES[how.cause].says : sentence(how.message)),
      };
  }
}

/** Seconds, by the site's own clock if it reported both times. Never negative, even if a clock jumped. */
function wallClock(ending: Ending, before: Before, now: number): number {
  const started = ending.startedAt ?? before.startedAt;
  const ended = ending.endedAt ?? now;
  return started === undefined ? 0 : credible(ended - started);
}

/** Limits a duration in seconds to a plausible range; negative values and NaN become 0. */
function credible(seconds = 0): number {
  return seconds >= 0 ? Math.min(seconds, MOST_SECONDS) : 0;
}

function real(seconds: number): string {
  return Number.isInteger(seconds) ? seconds.toFixed(1) : String(seconds);
}
