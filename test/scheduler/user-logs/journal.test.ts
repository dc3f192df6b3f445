import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { LogJournal } from '../../../src/scheduler/user-logs/journal.ts';

const dir = mkdtempSync('/tmp/gq-');
afterAll(() => rmSync(dir, { recursive: true, force: true }));
let number = 0;
const fresh = () => join(dir, `journal-${number++}`);

/** All pending text: that of each log, in order. */
async function owedBy(journal: LogJournal): Promise<Record<string, string>> {
  const owed: Record<string, string> = {};
  for (const path of journal.owed()) {
    owed[path] = '';
    const copy = await journal.next(path);
    owed[path] = copy.text;
  }
  return owed;
}

const log = fc.constantFrom('/a', '/b', '/c d\n');
const step = fc.oneof(
  fc.record({ does: fc.constant('accept' as const), logs: fc.dictionary(log, fc.string({ minLength: 1 })) }),
  fc.record({ does: fc.constant('done' as const), path: log }),
  fc.record({ does: fc.constant('attempt' as const), path: log, size: fc.nat(100) }),
  fc.record({ does: fc.constant('open' as const) }),
);

describe('the journal of what users’ logs are owed', () => {
  it('returns what was accepted and not written to any process that opens it', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const path = fresh();
        let journal = await LogJournal.open(path);
        const model: Record<string, string[]> = {};
        const begun: Record<string, { size: number; count: number }> = {};
        let batch = 0;
        for (const one of steps) {
          if (one.does === 'accept') {
            batch += 1;
            const additions = Object.entries(one.logs).map(([at, text]) => ({ path: at, text }));
            await journal.accept({ from: `${batch}-0`, last: `${batch}-9` }, additions, batch);
            for (const { path: at, text } of additions) (model[at] ??= []).push(text);
          } else if (one.does === 'done') {
            const count = begun[one.path]?.count ?? model[one.path]?.length ?? 0;
            await journal.done(new Map([[one.path, count]]));
            model[one.path]?.splice(0, count);
            if (model[one.path]?.length === 0) delete model[one.path];
            delete begun[one.path];
          } else if (one.does === 'attempt') {
            if (!model[one.path] || begun[one.path]) continue;
            const { count } = await journal.next(one.path);
            await journal.attempt(one.path, count, one.size);
            begun[one.path] = { size: one.size, count };
          } else {
            await journal.close();
            journal = await LogJournal.open(path);
            if (batch > 0) expect(journal.accepted).toEqual({ from: `${batch}-0`, last: `${batch}-9` });
          }
          const expected = Object.entries(model).map(([at, texts]) => [
            at,
            texts.slice(0, begun[at]?.count ?? texts.length).join(''),
          ]);
          expect(await owedBy(journal)).toEqual(Object.fromEntries(expected));
          for (const [at, { size }] of Object.entries(begun)) expect(await journal.next(at)).toMatchObject({ size });
        }
        await journal.close();
      }),
      { numRuns: 60 },
    );
  });

  it('has a batch whole or not at all, wherever a crash cut its file', async () => {
    const path = fresh();
    const journal = await LogJournal.open(path);
    await journal.accept({ from: '1-0', last: '1-5' }, [{ path: '/a', text: 'one\n', size: 7 }], 1);
    const first = statSync(path).size;
    await journal.accept(
      { from: '2-0', last: '2-5' },
      [
        { path: '/a', text: 'two\n' },
        { path: '/b', text: 'ü\n' },
      ],
      2,
    );
    await journal.close();
    const whole = statSync(path).size;
    for (let size = first; size <= whole; size++) {
      const cut = fresh();
      copyFileSync(path, cut);
      truncateSync(cut, size);
      const after = await LogJournal.open(cut);
      expect(after.accepted?.from).toBe(size === whole ? '2-0' : '1-0');
      expect(after.owes('/b')).toBe(size === whole);
      expect(await after.next('/a')).toEqual({ text: 'one\n', count: 1, size: 7 });
      // The part that was cut off does not return with the next batch.
      await after.accept({ from: '3-0', last: '3-5' }, [{ path: '/c', text: 'three\n' }], 3);
      await after.close();
      const again = await LogJournal.open(cut);
      expect([...again.owed()]).toEqual(size === whole ? ['/a', '/b', '/c'] : ['/a', '/c']);
      await again.close();
    }
  });

  it('does not grow with what was written', async () => {
    const path = fresh();
    const journal = await LogJournal.open(path);
    await journal.accept({ from: '1-0', last: '1-0' }, [{ path: '/stuck', text: 'stays\n' }], 1);
    const large = 'x'.repeat(100_000);
    for (let n = 2; n < 300; n++) {
      await journal.accept({ from: `${n}-0`, last: `${n}-0` }, [{ path: '/well', text: large, size: 0 }], n);
      await journal.done(new Map([['/well', 1]]));
    }
    expect(statSync(path).size).toBeLessThan(9_000_000);
    expect(await journal.next('/stuck')).toMatchObject({ text: 'stays\n' });
    await journal.done(new Map([['/stuck', 1]]));
    await journal.accept({ from: '900-0', last: '900-0' }, [], 3);
    expect(readFileSync(path, 'utf8')).toBe('{"from":"900-0","last":"900-0"}\n');
    await journal.close();
  });
});
