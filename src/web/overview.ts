import type * as z from 'zod';
import type { CredentialStatus, DaemonStatus, SiteStatus } from '../index.ts';
import { LIFE, type State } from '../job/life.ts';
import { counted, spanText } from '../util/plain-text.ts';
import { nameOf } from './job-table.ts';
import { type Row, ROW_ATTRIBUTES, rowOf } from './row.ts';
import type { NEED, OVERVIEW } from './schemas.ts';
import type { Web } from './web.ts';

type Need = z.infer<typeof NEED>;

/** A credential is told of when it ends within this time; seconds. */
const SOON = 24 * 3600;
/** How many held jobs' reasons are read, and how long that is good; milliseconds. */
const MOST_HELD = 5000;
const HELD_MS = 2000;
const HELD = (Object.keys(LIFE) as State[]).filter((state) => LIFE[state].shows === 'held');
const NAMED = 5;
const GROUPS = 20;

export const credentialsOf = (web: Web): Promise<readonly CredentialStatus[]> =>
  web.recent.get('credentials', 15_000, () => web.gryphus.credentials());
export const sitesOf = (web: Web): Promise<readonly SiteStatus[]> =>
  web.recent.get('sites', 200, () => web.gryphus.sites());
const statusOf = (web: Web): Promise<DaemonStatus> => web.recent.get('status', 1000, () => web.gryphus.status());

/** From counters: its cost does not grow with the number of jobs. Only samples later than `after`, in Unix seconds. */
export async function overview(web: Web, after: number): Promise<z.infer<typeof OVERVIEW>> {
  const [status, sites, totals] = await Promise.all([statusOf(web), sitesOf(web), web.gryphus.totals()]);
  const needs: Need[] = [];
  if (!status.running) needs.push({ what: 'scheduler', text: 'The Scheduler does not run. Type: gryphus up' });
  if (status.userLogs)
    needs.push({ what: 'user-log', text: `${counted(status.userLogs.count, 'user log')} cannot be written.` });
  for (const { name, connection, message, outOfUse } of sites) {
    if (connection === 'needs-login') needs.push({ what: 'log-in', text: message ?? 'It wants a log-in.', name });
    else if (connection === 'down' || connection === 'refused')
      needs.push({ what: 'site', text: message ?? `It is ${connection}.`, name });
    else if (outOfUse !== undefined) needs.push({ what: 'site', text: outOfUse, name });
  }
  return {
    totals,
    samples: web.samples.after(after),
    sites: [...sites],
    needs,
    scheduler: { running: status.running, ...(status.since === undefined ? {} : { since: status.since }) },
  };
}

/** What needs a person and takes a look at the jobs: held ones by reason, credentials that end. */
export async function needs(web: Web): Promise<Need[]> {
  const { held } = await web.gryphus.totals();
  const rows = held === 0 ? [] : await web.recent.get('held', HELD_MS, () => heldRows(web));
  const found = heldGroups(rows);
  if (held > rows.length && rows.length === MOST_HELD)
    found.push({ what: 'held', text: 'More held jobs; their reasons were not read.', count: held - rows.length });
  for (const { name, what, state, left, renews, problem } of await credentialsOf(web)) {
    if (what === 'log-in') continue;
    if (state === 'ended' || state === 'unusable')
      found.push({
        what: 'credential',
        name,
        text: problem ?? (state === 'ended' ? 'It has ended.' : 'It cannot be used.'),
      });
    else if (left !== undefined && left < SOON && !renews)
      found.push({ what: 'credential', name, text: `It ends in ${spanText(left)}.` });
  }
  return found;
}

async function heldRows({ gryphus }: Web): Promise<Row[]> {
  const rows: Row[] = [];
  for await (const jobs of gryphus.queryChunks({ states: HELD, attributes: ROW_ATTRIBUTES, limit: MOST_HELD }))
    rows.push(...jobs.map(rowOf));
  return rows;
}

/** Held jobs whose reasons differ only in numbers count together. */
export function heldGroups(rows: readonly Row[]): Need[] {
  const groups = new Map<string, { text: string; count: number; jobs: string[] }>();
  for (const { id, hold, state } of rows) {
    if (LIFE[state].shows !== 'held') continue;
    const key = hold.replaceAll(/\d+/g, '#');
    const group = groups.get(key) ?? { text: hold === '' ? 'No reason is known.' : hold, count: 0, jobs: [] };
    group.count += 1;
    if (group.jobs.length < NAMED) group.jobs.push(nameOf(id));
    groups.set(key, group);
  }
  const sorted = [...groups.values()].sort((a, b) => b.count - a.count);
  return sorted.slice(0, GROUPS).map((group) => ({ what: 'held', ...group }));
}
