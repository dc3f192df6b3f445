import { describe, expect, it } from 'vitest';
import { LOCAL_SITE } from '../../src/config/sites.ts';
import type { SiteContext } from '../../src/gridmanager/context.ts';
import { holdPrepared } from '../../src/gridmanager/hold-prepared.ts';
import { Attrs } from '../../src/job/attrs.ts';
import type { AttemptKey } from '../../src/job/ids.ts';
import type { Change, JobRecord } from '../../src/queue/api.ts';
import type { PollAnswer, Report } from '../../src/site/contract.ts';

const keyOf = (proc: number): AttemptKey => `a.1.${proc}.1`;
const job = (proc: number): JobRecord => ({
  id: { cluster: 1, proc },
  state: 'prepared',
  manager: 'u',
  site: 's',
  attempt: 1,
  priority: 0,
  since: 0,
  attrs: new Attrs({ NumHolds: '2' }),
});

/** Which of jobs 0, 1, … are held if the site reports this, by proc. */
async function held(is: readonly (Report['is'] | undefined)[], usability: string, complete = true): Promise<Change[]> {
  const changes: Change[] = [];
  const woken: string[] = [];
  const reports = is.flatMap((one, proc) => (one ? [{ key: keyOf(proc), is: one } as Report] : []));
  const answer: PollAnswer = { cursor: 'c', complete, reports, chunks: [] };
  const ctx: Partial<Record<keyof SiteContext, unknown>> = {
    record: LOCAL_SITE,
    site: { poll: async () => answer },
    gate: { look: async () => ({ usability: { is: usability, why: 'It ends.', subCode: 1 } }) },
    queue: {
      transitionMany: async (some: Change[]) => {
        changes.push(...some);
        return some.map(() => ({ ok: true }));
      },
    },
    wake: (workLoop: string) => woken.push(workLoop),
  };
  await holdPrepared(
    ctx as SiteContext,
    is.map((_, proc) => ({ key: keyOf(proc), job: job(proc) })),
  );
  expect(woken).toEqual(changes.length > 0 ? ['cancel'] : []);
  return changes;
}

describe('prepared jobs whose credential ends', () => {
  it('are held if the site says that they are only prepared, or does not know them', async () => {
    const changes = await held(['prepared', 'queued', 'running', undefined, 'ended'], 'ended');
    expect(changes.map(({ id, event, from }) => [id.proc, event, from])).toEqual([
      [0, 'hold', 'prepared'],
      [3, 'hold', 'prepared'],
    ]);
    expect(changes[0]?.set).toMatchObject({
      HoldReasonCode: '4',
      HoldReasonSubCode: '1',
      NumHolds: '3',
      HoldReason: '"It ends. The job is released automatically when the credential is valid again."',
    });
  });

  it('are left where the answer is not whole, or the credential is only being written', async () => {
    expect(await held([undefined], 'ended', false)).toEqual([]);
    expect(await held(['prepared'], 'unusable')).toEqual([]);
  });
});
