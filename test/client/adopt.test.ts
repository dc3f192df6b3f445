import { expect, it } from 'vitest';
import { unadoptable } from '../../src/client/adopt.ts';
import { Attrs } from '../../src/job/attrs.ts';
import type { State } from '../../src/job/life.ts';
import type { AuditRecord } from '../../src/site/audit.ts';

const attempt = { agent: 'a', cluster: 12, proc: 0, attempt: 2 };
const there = (state: AuditRecord['state']): AuditRecord => ({
  key: 'a.12.0.2',
  submission: 1,
  batchId: '7',
  state,
});
const id = { cluster: 12, proc: 0 };
const job = (state: State, of: number) => ({
  id,
  state,
  manager: 'me',
  site: 'here',
  attempt: of,
  priority: 0,
  since: 0,
  attrs: new Attrs({}),
});
const past = (state: State, of: number) => ({
  id,
  state,
  retired: 0,
  attrs: new Attrs({ GryphusAttempt: String(of) }),
});
const why = (
  record: AuditRecord | undefined,
  now?: ReturnType<typeof job>,
  before?: ReturnType<typeof past>,
): string | undefined => unadoptable({ attempt, there: record, job: now, past: before });

it('an attempt can be adopted where its job waits, or was removed, and the site has something of it', () => {
  for (const state of ['submitted', 'started', 'ended'] as const) {
    for (const here of ['idle', 'held'] as const)
      for (const of of [1, 2]) expect(why(there(state), job(here, of))).toBe(undefined);
    expect(why(there(state), undefined, past('removed', 2))).toBe(undefined);
  }
});

it('and it is said why where it cannot', () => {
  expect(why(undefined, job('held', 2))).toMatch(/directory there is gone/);
  expect(why(there('prepared'), job('idle', 2))).toMatch(/never meant to run/);
  expect(why(there('cancelled'), job('idle', 2))).toMatch(/will not run/);
  expect(why(there('fenced'), job('idle', 2))).toMatch(/will not run/);
  expect(why(there('started'), job('held', 3))).toMatch(/again, in attempt 3/);
  expect(why(there('started'), job('running', 3))).toMatch(/being handled in attempt 3/);
  expect(why(there('started'), job('completed', 3))).toMatch(/is completed here/);
  expect(why(there('started'), job('kept', 3))).toMatch(/is kept here/);
  expect(why(there('started'))).toMatch(/neither in the queue nor in the history/);
  expect(why(there('started'), undefined, past('completed', 2))).toMatch(/has completed/);
  expect(why(there('started'), undefined, past('removed', 3))).toMatch(/again, in attempt 3/);
});
