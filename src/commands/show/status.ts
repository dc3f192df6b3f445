import type { Build, DaemonStatus, SiteStatus } from '../../index.ts';
import { oneLine } from '../../util/plain-text.ts';
import { longDate } from './dates.ts';
import { siteLines } from './sites.ts';
import { totalsText } from './totals.ts';
import type { Width } from './width.ts';

/** `gryphus status`: the daemons, the queue, the pool, the sites. `since` is Unix milliseconds. */
export function statusLines(status: DaemonStatus, sites: readonly SiteStatus[], width: Width, pool?: string): string[] {
  const since = (at: number | undefined) => (at === undefined ? '' : ` since ${longDate(at)}`);
  const elsewhere = status.host === undefined ? '' : `; the state was last used on host ${oneLine(status.host)}`;
  const scheduler = status.running
    ? `running (process ${status.pid ?? '?'})${since(status.since)}`
    : `not running${elsewhere}`;
  return [
    `Scheduler:   ${scheduler}`,
    ...buildLines(status),
    `Redis:       ${status.redis}`,
    ...status.managers.map((one) => `GridManager: ${one.identity} (process ${one.pid})${since(one.since)}`),
    `State:       ${status.home}`,
    ...(status.totals ? [`Queue:       ${totalsText(status.totals)}`] : []),
    ...repairLines(status.repairs),
    ...userLogLines(status.userLogs),
    ...mailLines(status.unsentMail),
    ...(pool === undefined ? poolTroubleLines(status) : [`Pool:        ${pool}`]),
    ...(sites.length > 0 ? ['', ...siteLines(sites, width)] : []),
  ];
}

function repairLines(repairs: DaemonStatus['repairs']): string[] {
  if (!repairs) return [];
  const { count, at, message } = repairs;
  return [`Damage:      ${count} ${count === 1 ? 'byte' : 'bytes'} put back; ${longDate(at)}: ${oneLine(message)}`];
}

function poolTroubleLines({ poolTrouble }: DaemonStatus): string[] {
  return poolTrouble === undefined ? [] : [`Pool:        does not run: ${oneLine(poolTrouble)}`];
}

function buildLines({ build, ownBuild }: DaemonStatus): string[] {
  const shown = (one: Build) => `${one.version} of ${oneLine(one.path)}`;
  if (!ownBuild) return build ? [`Gryphus:     ${shown(build)}`] : [];
  const age = build === undefined || build.built < ownBuild.built ? 'an older' : 'a newer';
  return [
    `Gryphus:     ${build ? `${shown(build)}, ` : ''}${age} build than this command's`,
    ...(build && build.path === ownBuild.path ? [] : [`             (${shown(ownBuild)})`]),
    '             `gryphus down && gryphus up` switches to it; jobs keep running',
  ];
}

function mailLines(unsent: DaemonStatus['unsentMail']): string[] {
  if (!unsent) return [];
  const { since, error, lost } = unsent;
  return [
    `Mail:        not sent since ${longDate(since)}: ${oneLine(error)}`,
    `             ${lost ? 'some is lost' : 'it is tried again'}; \`gryphus alarm test\` tries it now`,
  ];
}

/** How many user logs are listed one by one. */
const SHOWN = 3;

function userLogLines(owed: DaemonStatus['userLogs']): string[] {
  if (!owed) return [];
  const lines = owed.logs
    .slice(0, SHOWN)
    .map(({ path, since, error }) => `  ${oneLine(path)}, since ${longDate(since)}: ${oneLine(error)}`);
  const more = owed.count - lines.length;
  return [
    `User logs:   ${owed.count} cannot be written now; their events are kept`,
    ...lines,
    ...(more > 0 ? [`  and ${more} more`] : []),
  ];
}
