import { alarmTimes, reached } from './alarm-times.ts';
import type { CredentialAction, Memory, CredentialNews, WatchConfig, Watched, WatchedJob } from './model.ts';
import type { Usability } from './usability.ts';

const REMEMBERED = 400;

/** The warning that is due, if any; at most one per credential and look. */
export function tell(
  credential: Watched,
  found: Usability,
  users: readonly WatchedJob[],
  memory: Memory,
  now: number,
  config: WatchConfig,
): { actions: readonly CredentialAction[]; memory: Memory } {
  const { name, version, end } = credential;
  const say = (key: string, news: CredentialNews['news'], also: readonly string[], problem?: string) => {
    const given = new Set(memory.given);
    const actions: CredentialAction[] = given.has(key)
      ? []
      : [{ do: 'alarm', news: newsOf(credential, key, news, users, now, problem) }];
    const added = [...also, key].filter((one) => !given.has(one));
    return { actions, given: [...memory.given, ...added].slice(-REMEMBERED) };
  };
  if (found.is !== 'good') {
    const about =
      found.is === 'ended' ? `${end}` : found.is === 'early' ? `${credential.start}` : (memory.good ?? 'never');
    const said = say(`${name} ${found.is} ${about}`, found.is === 'ended' ? 'ended' : 'broken', [], found.why);
    return { actions: said.actions, memory: { ...memory, given: said.given, fell: true } };
  }
  const times = end === undefined ? [] : reached(alarmTimes(credential, config), end, now);
  const due = times.map((one) => `${name} ends ${end} ${one}`);
  if (memory.fell) {
    // This message names the end, so no other warning is needed.
    const said = say(`${name} fresh ${version}`, 'fresh', due);
    return { actions: said.actions, memory: { ...memory, given: said.given, fell: false } };
  }
  const { failures, problem } = memory.renewal;
  // A credential that renews itself is only worth a warning once that fails.
  if (credential.renews && failures === 0) return { actions: [], memory };
  const last = due.at(-1);
  if (last === undefined) return { actions: [], memory };
  const said = say(last, failures > 0 ? 'renewal-failing' : 'ending', due, problem);
  return { actions: said.actions, memory: { ...memory, given: said.given } };
}

function newsOf(
  { name, what, end, type, holds }: Watched,
  key: string,
  news: CredentialNews['news'],
  users: readonly WatchedJob[],
  now: number,
  problem: string | undefined,
): CredentialNews {
  return {
    key,
    news,
    name,
    what,
    now,
    ...(end === undefined ? {} : { end }),
    ...(problem === undefined ? {} : { problem }),
    jobs: users.map((one) => one.id),
    sites: [...new Set(users.map((one) => one.site))],
    type,
    holds,
  };
}
