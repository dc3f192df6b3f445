import { describe, expect, it } from 'vitest';
import { LOCAL_SITE } from '../../src/config/sites.ts';
import type { SiteContext } from '../../src/gridmanager/context.ts';
import { changeOf } from '../../src/gridmanager/watch-loop.ts';
import { Attrs } from '../../src/job/attrs.ts';
import type { State } from '../../src/job/life.ts';
import type { JobRecord } from '../../src/queue/api.ts';

const ctx = { record: { ...LOCAL_SITE, name: 'there' }, now: () => 5_000_000 } as unknown as SiteContext;

function job(state: State, attrs: Record<string, string>): JobRecord {
  return {
    id: { cluster: 1, proc: 0 },
    state,
    manager: 'me',
    site: 'there',
    attempt: 1,
    priority: 0,
    since: 0,
    attrs: new Attrs(attrs),
  };
}

describe('a job that runs', () => {
  const running = { key: 'a.1.0.1', is: 'running', since: 4000 } as const;

  it('is counted when it starts', () => {
    const set = changeOf(ctx, job('committed', { NumJobStarts: '1' }), running)?.set;
    expect(set).toMatchObject({ NumJobStarts: '2', JobCurrentStartDate: '4000' });
  });

  it.each(['suspended', 'unknown-running'] as const)('and not again when it continues after it was %s', (state) => {
    const change = changeOf(ctx, job(state, { NumJobStarts: '1', JobCurrentStartDate: '4000' }), running);
    expect(change?.event).toBe('started');
    expect(Object.keys(change?.set ?? {})).not.toContain('NumJobStarts');
    expect(Object.keys(change?.set ?? {})).not.toContain('JobCurrentStartDate');
  });

  it('is counted where it was suspended, or its site silent, before its start was seen', () => {
    for (const state of ['suspended', 'unknown'] as const)
      expect(changeOf(ctx, job(state, {}), running)?.set).toMatchObject({ NumJobStarts: '1' });
  });
});
