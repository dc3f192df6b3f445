import type { DaemonStatus, SiteStatus } from '../../index.ts';
import { longDate } from './dates.ts';
import { siteLines } from './sites.ts';
import { totalsText } from './totals.ts';
import type { Width } from './width.ts';

/** `gryphus status`: the daemons, the queue, the pool, the sites. `since` is Unix milliseconds. */
export function statusLines(status: DaemonStatus, sites: readonly SiteStatus[], width: Width, pool?: string): string[] {
  const since = (at: number | undefined) => (at === undefined ? '' : ` since ${longDate(at)}`);
  const scheduler = status.running ? `running (process ${status.pid ?? '?'})${since(status.since)}` : 'not running';
  return [
    `Scheduler:   ${scheduler}`,
    `Redis:       ${status.redis}`,
    ...status.managers.map((one) => `GridManager: ${one.identity} (process ${one.pid})${since(one.since)}`),
    `State:       ${status.home}`,
    ...(status.totals ? [`Queue:       ${totalsText(status.totals)}`] : []),
    ...(pool === undefined ? [] : [`Pool:        ${pool}`]),
    ...(sites.length > 0 ? ['', ...siteLines(sites, width)] : []),
  ];
}
