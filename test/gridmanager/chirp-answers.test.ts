import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { JobAnswers } from '../../src/gridmanager/chirp/answer-job.ts';
import { Secrets } from '../../src/gridmanager/chirp/secrets.ts';
import type { SiteContext } from '../../src/gridmanager/context.ts';
import { Attrs } from '../../src/job/attrs.ts';
import { formatAttemptKey } from '../../src/job/ids.ts';
import { CHIRP_ERROR, type HomeRequest } from '../../src/site/chirp.ts';

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'answers-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const KEY = formatAttemptKey({ agent: 'a', cluster: 1, proc: 0, attempt: 1 });

function answers(): JobAnswers {
  const attrs = new Attrs({ Iwd: JSON.stringify(dir), WantIOProxy: 'true' });
  const job = { id: { cluster: 1, proc: 0 }, attempt: 1, manager: 'm', site: 'pool', attrs };
  const queue = { get: () => Promise.resolve([job]) };
  const ctx = { agent: 'a', manager: 'm', record: { name: 'pool' }, queue } as unknown as SiteContext;
  return new JobAnswers(ctx, new Secrets([]));
}

function request(op: HomeRequest['op'], n: number, again = false, numbers: number[] = []): HomeRequest {
  return { op, words: ['f'], numbers, session: 's', n, again };
}

it('does what changes something once, and finds anew what only reads', async () => {
  const home = answers();
  writeFileSync(join(dir, 'f'), 'one');
  const read = async () => {
    const { bytes = '' } = await home.answer(KEY, request('read', 1, true, [100, 0]), Buffer.alloc(0));
    return Buffer.from(bytes).toString();
  };
  expect(await read()).toBe('one');
  writeFileSync(join(dir, 'f'), 'two');
  // An answer of a megabyte for each connection that a job ever opened would be too much to keep.
  expect(await read()).toBe('two');
  for (const again of [false, true])
    expect(await home.answer(KEY, request('append', 2, again), Buffer.from('!'))).toEqual({ result: 1 });
  expect(readFileSync(join(dir, 'f'), 'utf8')).toBe('two!');
});

it('refuses what an earlier process may have done, and knows a connection by what it read', async () => {
  const home = answers();
  writeFileSync(join(dir, 'f'), '');
  const append = (n: number) => home.answer(KEY, request('append', n, true), Buffer.from('!'));
  expect(await append(1)).toEqual({ result: CHIRP_ERROR.offline });
  const other = answers();
  await other.answer(KEY, request('stat', 1), Buffer.alloc(0));
  expect(await other.answer(KEY, request('append', 2, true), Buffer.from('!'))).toEqual({ result: 1 });
});
