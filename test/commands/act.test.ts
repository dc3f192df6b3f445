import { describe, expect, it } from 'vitest';
import { actionLines } from '../../src/commands/show/act.ts';
import { submittedText, terseText } from '../../src/commands/show/submit.ts';
import type { Action, ActionResult, Selection } from '../../src/index.ts';
import { recorded, recordings } from './recordings.ts';

const id = (cluster: number, proc: number) => ({ cluster, proc });
const done: ActionResult = { id: id(45, 0), result: 'done', message: '' };

describe('hold, release and rm say what HTCondor says', () => {
  const cases: [Action, string, Selection, ActionResult[]][] = [
    ['hold', 'condor_hold 45.0', { ids: [id(45, 0)] }, [done]],
    ['release', 'condor_release 45.0', { ids: [id(45, 0)] }, [done]],
    ['hold', 'condor_hold 48', { clusters: [48] }, [done]],
    ['release', 'condor_release 48', { clusters: [48] }, [done]],
    ['hold', "condor_hold -constraint 'ClusterId == 48'", { constraint: 'ClusterId == 48' }, [done]],
    ['hold', 'condor_hold htcuser', { owner: 'htcuser' }, [done]],
    ['release', 'condor_release -all', { all: true }, [done]],
    ['remove', 'condor_rm -all', { all: true }, [done]],
    ['remove', 'condor_rm 48.0', { ids: [id(48, 0)] }, [{ ...done, id: id(48, 0) }]],
    ['remove', 'condor_rm 99999.3', { ids: [id(99999, 3)] }, []],
    ['remove', 'condor_rm 99999', { clusters: [99999] }, []],
    ['hold', 'condor_hold 99999', { clusters: [99999] }, []],
    ['remove', 'condor_rm abc', { owner: 'abc' }, []],
    ['hold', 'condor_hold -all', { all: true }, []],
  ];
  /** What the client returns for a job that an action was applied to. */
  const words = { hold: 'held', release: 'released', remove: 'marked for removal' } as const;
  it.each(cases)('%s: %s', (action, command, target, answers) => {
    const results = answers.map((answer) => ({ ...answer, message: words[action] }));
    const want = recordings('rm-hold-release.txt').find((one) => one.command === command);
    const said = actionLines(action, target, results);
    // HTCondor's line; for many jobs, their number follows.
    expect(said.map(({ line }) => `${line.replace(/ \(1 job\)$/, '')}\n`).join('')).toBe(
      want?.exit === 0 ? want.stdout : want?.stderr.trimStart(),
    );
    expect(said.every(({ ok }) => ok)).toBe(want?.exit === 0);
  });

  it('of many, how many, and what of the others', () => {
    const many = (n: number, message: string, result: ActionResult['result'] = 'done') =>
      Array.from({ length: n }, (_, proc): ActionResult => ({ id: id(9, proc), result, message }));
    const half = { clusters: [9], constraint: 'ProcId % 2 == 1' };
    expect(actionLines('remove', half, many(20, 'marked for removal'))).toEqual([
      {
        ok: true,
        line: 'All jobs in cluster 9 matching constraint (ProcId % 2 == 1) have been marked for removal (20 jobs)',
      },
    ]);
    const some = [...many(2, 'held'), ...many(3, 'already held', 'already')];
    expect(actionLines('hold', { owner: 'jane' }, some)).toEqual([
      { ok: true, line: 'All jobs of user "jane" have been held (2 jobs; 3 already held)' },
    ]);
    expect(actionLines('suspend', { clusters: [9] }, many(3, 'not running in the pool', 'bad-state'))).toEqual([
      { ok: false, line: "Couldn't find/suspend all jobs in cluster 9 (3 not running in the pool)" },
    ]);
    expect(actionLines('hold', { ids: [id(9, 0)], constraint: 'true' }, [])).toEqual([
      { ok: false, line: 'Job 9.0 not found matching constraint (true)' },
    ]);
  });

  it('of each job by itself', () => {
    const target = { ids: [id(48, 0), id(48, 1), id(48, 2)] };
    const results: ActionResult[] = [
      { id: id(48, 1), result: 'already', message: 'already held' },
      { id: id(48, 0), result: 'done', message: 'held' },
    ];
    expect(actionLines('hold', target, results)).toEqual([
      { ok: true, line: 'Job 48.0 held' },
      { ok: false, line: 'Job 48.1 already held' },
      { ok: false, line: 'Job 48.2 not found' },
    ]);
  });
});

it('submit draws one line of dots at most', () => {
  const text = submittedText({ cluster: 3, total: 10_000 });
  expect(text.split('\n').map((line) => line.length <= 80)).not.toContain(false);
  expect(text).toContain('\n10000 job(s) submitted to cluster 3.\n');
});

it('submit says what condor_submit says', () => {
  const submitted = { cluster: 3, queued: 3, total: 3, warnings: [] };
  expect(submittedText(submitted)).toBe(recorded('submit-stdout.txt', 'condor_submit three.sub').stdout);
  expect(terseText({ ...submitted, cluster: 5 })).toBe(
    recorded('submit-stdout.txt', 'condor_submit -terse three.sub').stdout,
  );
});
