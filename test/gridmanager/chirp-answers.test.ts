import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { JobAnswers } from '../../src/gridmanager/chirp/answer-job.ts';
import { Secrets } from '../../src/gridmanager/chirp/secrets.ts';
import type { SiteContext } from '../../src/gridmanager/context.ts';
import { Attrs } from '../../src/job/attrs.ts';
import { formatAttemptKey } from '../../src/job/ids.ts';
import type { Change } from '../../src/queue/api.ts';
import type { HomeRequest } from '../../src/site/chirp.ts';

let dir = '';
beforeEach(() => {
  [dir, spool] = [mkdtempSync(join(tmpdir(), 'answers-')), mkdtempSync(join(tmpdir(), 'spool-'))];
  [changes, own] = [[], {}];
});
afterEach(() => {
  for (const one of [dir, spool]) rmSync(one, { recursive: true, force: true });
});

const KEY = formatAttemptKey({ agent: 'a', cluster: 1, proc: 0, attempt: 1 });

let spool = '';
let changes: Change[] = [];
let own: Record<string, string> = {};

function answers(): JobAnswers {
  const attrs = new Attrs({ Iwd: JSON.stringify(dir), WantIOProxy: 'true', ...own });
  const job = { id: { cluster: 1, proc: 0 }, attempt: 1, manager: 'm', site: 'pool', attrs };
  const queue = {
    get: () => Promise.resolve([job]),
    transitionMany: (some: Change[]) => {
      changes.push(...some);
      for (const { set } of some) Object.assign(own, set);
      return Promise.resolve(some.map(() => ({ ok: true })));
    },
  };
  const files = { requestJournal: () => spool };
  const ctx = { agent: 'a', manager: 'm', record: { name: 'pool' }, queue, spool: files } as unknown as SiteContext;
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

/** Each request of a connection, what is there before it, and what is there after it, however often it is sent. */
const CHANGES: readonly (readonly [
  op: HomeRequest['op'],
  words: string[],
  numbers: number[],
  bytes: string,
  after: Readonly<Record<string, string>>,
])[] = [
  ['append', ['f'], [], '!', { f: 'one!' }],
  ['unlink', ['f'], [], '', {}],
  ['rename', ['f', 'g'], [], '', { g: 'one' }],
  ['mkdir', ['d'], [0o755], '', { f: 'one', d: '/' }],
  ['link', ['f', 'g'], [], '', { f: 'one', g: 'one' }],
  ['symlink', ['f', 'g'], [], '', { f: 'one', g: 'one' }],
  ['open', ['g', 'wcx'], [0o644], '', { f: 'one', g: '' }],
  ['open', ['f', 'wct'], [0o644], '', { f: '' }],
];

it.each(CHANGES)(
  'does %s %j once, although the process at home is another',
  async (op, words, numbers, bytes, after) => {
    writeFileSync(join(dir, 'f'), 'one');
    const send = (again: boolean) =>
      answers().answer(KEY, { op, words, numbers, session: 's', n: 7, again }, Buffer.from(bytes));
    const { result } = await send(false);
    expect(result).toBeGreaterThanOrEqual(0);
    for (let i = 0; i < 2; i++) expect(await send(true)).toMatchObject({ result });
    const there = Object.fromEntries(
      readdirSync(dir).map((name) => [name, name === 'd' ? '/' : readFileSync(join(dir, name), 'utf8')]),
    );
    expect(there).toEqual(after);
  },
);

it('does what comes again for the first time, and the next request of the same connection', async () => {
  writeFileSync(join(dir, 'f'), '');
  for (const n of [1, 1, 2, 2]) await answers().answer(KEY, request('append', n, true), Buffer.from('!'));
  expect(readFileSync(join(dir, 'f'), 'utf8')).toBe('!!');
});

it('writes a line of the log once', async () => {
  for (const [n, again] of [
    [1, false],
    [1, true],
    [2, true],
  ] as const)
    expect(await answers().answer(KEY, request('ulog', n, again), Buffer.alloc(0))).toEqual({ result: 0 });
  expect(changes.map(({ info }) => info)).toEqual([{ ulog: 'f' }, { ulog: 'f' }]);
});
