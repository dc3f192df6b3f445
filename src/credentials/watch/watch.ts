import type { JobId } from '../../job/ids.ts';
import { alarmTimes } from './alarm-times.ts';
import {
  type CredentialAction,
  CREDENTIAL_HOLD,
  type Memories,
  type Memory,
  type RemoteCopy,
  type WatchConfig,
  type Watched,
  type WatchedJob,
} from './model.ts';
import { renewalDue } from './renewal.ts';
import {
  holdReason,
  lastUse,
  mayUse,
  type Usability,
  usability,
  type Unusable,
  unknownCredential,
} from './usability.ts';
import { tell } from './tell.ts';

export interface WatchInput {
  /** Unix seconds. */
  readonly now: number;
  readonly credentials: readonly Watched[];
  readonly jobs: readonly WatchedJob[];
  readonly copies: readonly RemoteCopy[];
  readonly memories: Memories;
  readonly config: WatchConfig;
}

export interface WatchResult {
  readonly actions: readonly CredentialAction[];
  /** Save these before carrying out the actions: a warning lost in a crash is better than one sent twice. */
  readonly memories: Memories;
  /** When the clock alone will change something, in Unix seconds. */
  readonly nextLook: number | undefined;
}

const NEW: Memory = { given: [], fell: false, renewal: { failures: 0 } };

/**
 * One look at all credentials, after a change of any credential or job, or at `nextLook`. Pure. Holds and releases
 * follow from the current state and not from what changed, so a missed look does no harm; warnings are given once.
 */
export function look(input: WatchInput): WatchResult {
  const { now, credentials, jobs, copies, config } = input;
  const users = usersOf(jobs);
  const actions: CredentialAction[] = [];
  const memories: Record<string, Memory> = {};
  const times: number[] = [];
  const settled = new Map<string, Usability>();
  for (const credential of credentials) {
    const mine = users.get(credential.name) ?? [];
    const one = lookAt(credential, mine, input.memories[credential.name] ?? NEW, now, config);
    memories[credential.name] = one.memory;
    actions.push(...one.actions);
    times.push(...one.times);
    if (one.settled !== undefined) settled.set(credential.name, one.settled);
  }
  actions.push(
    ...holds(jobs, credentials, settled),
    ...releases(input),
    ...refreshes(copies, jobs, credentials, settled),
  );
  const later = times.filter((one) => one > now);
  return { actions, memories, nextLook: later.length === 0 ? undefined : Math.min(...later) };
}

interface One {
  readonly actions: readonly CredentialAction[];
  readonly memory: Memory;
  readonly times: readonly number[];
  /** Whether it is usable; `undefined` while that is unclear (it may be being rewritten). */
  readonly settled: Usability | undefined;
}

function lookAt(
  credential: Watched,
  users: readonly WatchedJob[],
  before: Memory,
  now: number,
  config: WatchConfig,
): One {
  const found = usability(credential, now, config);
  const good = found.is === 'good';
  const { brokenSince: earlier, ...rest } = before;
  const unusable = found.is === 'unusable';
  const brokenSince = unusable ? Math.min(earlier ?? now, now) : undefined;
  const clear = brokenSince === undefined || now >= brokenSince + config.grace;
  let memory: Memory = {
    ...rest,
    ...(brokenSince === undefined ? {} : { brokenSince }),
    ...(good ? { good: credential.version } : {}),
    // Failures belong to the old version; this one is fresh, however it was renewed.
    ...(good && before.good !== credential.version ? { renewal: { failures: 0 } } : {}),
  };
  const times = [
    ...(credential.start === undefined ? [] : [credential.start - config.skew]),
    lastUse(credential, config) ?? now,
    ...(brokenSince === undefined ? [] : [brokenSince + config.grace]),
  ];
  if (users.length === 0) {
    return { actions: [], memory: { ...memory, fell: false }, times, settled: clear ? found : undefined };
  }
  const actions: CredentialAction[] = [];
  const due = renewalDue(credential, good, memory.renewal, now, config);
  if (due !== undefined && due <= now) {
    actions.push({ do: 'renew', credential: credential.name });
    memory = { ...memory, renewal: { ...memory.renewal, since: now } };
    times.push(now + config.renewTimeout);
  } else if (due !== undefined) times.push(due);
  const { end } = credential;
  if (end !== undefined) times.push(...alarmTimes(credential, config).map((one) => end - one));
  if (clear) {
    const said = tell(credential, found, users, memory, now, config);
    memory = said.memory;
    actions.push(...said.actions);
  }
  return { actions, memory, times, settled: clear ? found : undefined };
}

function holds(
  jobs: readonly WatchedJob[],
  credentials: readonly Watched[],
  settled: ReadonlyMap<string, Usability>,
): readonly CredentialAction[] {
  const blocking = new Map<string, { readonly found: Unusable; readonly jobs: JobId[] }>();
  for (const { name, holds: stops } of credentials) {
    const found = settled.get(name);
    if (stops && found !== undefined && found.is !== 'good') blocking.set(name, { found, jobs: [] });
  }
  const known = new Set(credentials.map((one) => one.name));
  for (const job of jobs) {
    if (job.where !== 'waiting') continue;
    const name = job.needs.find((one) => blocking.has(one) || !known.has(one));
    if (name === undefined) continue;
    if (!blocking.has(name)) blocking.set(name, { found: unknownCredential(name), jobs: [] });
    blocking.get(name)?.jobs.push(job.id);
  }
  return [...blocking]
    .filter(([, one]) => one.jobs.length > 0)
    .map(([credential, { found, jobs: held }]) => {
      const remedy = credentials.find((one) => one.name === credential)?.type[0];
      const reason = holdReason(found, remedy);
      return { do: 'hold', credential, jobs: held, code: CREDENTIAL_HOLD.code, subCode: found.subCode, reason };
    });
}

function releases({ jobs, credentials, now, config }: WatchInput): readonly CredentialAction[] {
  const byName = new Map(credentials.map((one) => [one.name, one]));
  const ready = jobs.filter((job) => job.where === 'held' && mayUse(job.needs, byName, now, config).is === 'good');
  if (ready.length === 0) return [];
  return [
    { do: 'release', jobs: ready.map((one) => one.id), reason: 'The credentials that it needs are valid again.' },
  ];
}

/** Copies at sites that our jobs use and whose version differs from ours. */
function refreshes(
  copies: readonly RemoteCopy[],
  jobs: readonly WatchedJob[],
  credentials: readonly Watched[],
  settled: ReadonlyMap<string, Usability>,
): readonly CredentialAction[] {
  const inUse = new Set(jobs.flatMap((one) => one.needs.map((name) => `${name}\n${one.site}`)));
  return copies.flatMap(({ credential, site, version }) => {
    const ours = credentials.find((one) => one.name === credential);
    const usable = ours !== undefined && settled.get(credential)?.is === 'good';
    if (!usable || ours.version === version || !inUse.has(`${credential}\n${site}`)) return [];
    return [{ do: 'refresh', credential, site, version: ours.version }];
  });
}

function usersOf(jobs: readonly WatchedJob[]): ReadonlyMap<string, readonly WatchedJob[]> {
  const users = new Map<string, WatchedJob[]>();
  for (const job of jobs) {
    for (const name of new Set(job.needs)) {
      const list = users.get(name);
      if (list === undefined) users.set(name, [job]);
      else list.push(job);
    }
  }
  return users;
}
