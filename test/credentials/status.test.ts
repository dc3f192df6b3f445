import { describe, expect, it } from 'vitest';
import { credentialStatusText } from '../../src/commands/show/credential-status.ts';
import { credentialStatuses } from '../../src/credentials/status.ts';
import { DEFAULT_WATCH, type Watched, type WatchedJob } from '../../src/credentials/watch/model.ts';

const NOW = 1_000_000;
const base: Watched = { name: 'x', what: 'SSH key', version: '', renews: false, holds: true, type: [] };
const credentials: readonly Watched[] = [
  { ...base, name: 'site key', type: ['get-key'] },
  { ...base, name: 'jane', what: 'X.509 proxy', start: NOW - 3600, end: NOW + 3 * 3600, renews: true },
  { ...base, name: 'old', start: 0, end: NOW - 5, type: ['gryphus cred renew old'] },
  { ...base, name: 'gone\u001b[2J', problem: 'There is no key /x.', type: ['make it'] },
];
const job = (proc: number, where: WatchedJob['where'], needs: readonly string[], site = 'alpha'): WatchedJob => ({
  id: { cluster: 1, proc },
  where,
  needs,
  site,
});
const jobs = [job(0, 'waiting', ['jane']), job(1, 'there', ['jane', 'site key'], 'beta'), job(2, 'held', ['old'])];

describe('the list of credentials', () => {
  it('is data: what ends first is first', () => {
    const all = credentialStatuses(credentials, jobs, NOW, DEFAULT_WATCH);
    expect(all.map((one) => one.name)).toEqual(['old', 'jane', 'gone\u001b[2J', 'site key']);
    expect(all[1]).toMatchObject({
      left: 10_800,
      level: 0.75,
      waiting: 1,
      there: 1,
      held: 0,
      sites: ['alpha', 'beta'],
      state: 'good',
    });
    expect(all[0]).toMatchObject({ left: 0, state: 'ended', held: 1 });
  });

  it('is a table for people', () => {
    expect(credentialStatusText(credentialStatuses(credentials, jobs, NOW, DEFAULT_WATCH), undefined)).toBe(
      [
        'NAME      KIND         FUEL          LEFT                 JOBS                   SITES',
        'old       SSH key      [----------]  ended                1 held                 alpha',
        "  ! The SSH key 'old' ended at 1970-01-12 13:46 UTC.",
        '    gryphus cred renew old',
        'jane      X.509 proxy  [########..]  3 h (renews itself)  1 waiting, 1 at sites  alpha beta',
        'gone [2J  SSH key      [----------]  no known end         none',
        "  ! The SSH key 'gone [2J' cannot be used: There is no key /x.",
        '    make it',
        'site key  SSH key      [??????????]  no known end         1 at sites             beta',
        '',
      ].join('\n'),
    );
    expect(credentialStatusText([], undefined)).toBe('No credentials are configured.\n');
  });
});
