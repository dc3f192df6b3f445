import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { localFork } from '../conformance/grounds.ts';
import { freshKey, type Ground, spec } from '../conformance/kit.ts';

let ground: Ground;
afterEach(() => ground.close());

const run = { executable: { kind: 'there', path: '/bin/true' }, args: [] } as const;

it('only the state directory with the latest epoch is served, from the next request on', {
  timeout: 60_000,
}, async () => {
  ground = await localFork();
  const first = await ground.open({ holder: { epoch: 1, name: 'first' } });
  const key = freshKey();
  await first.prepare([spec(key, run)]);
  const looking = await ground.open();
  expect(await looking.past?.()).toMatchObject({ epoch: 1 });

  // Two that take it over at once, with one epoch: one of them does.
  const rivals = await Promise.all(['second', 'third'].map((name) => ground.open({ holder: { epoch: 4, name } })));
  const answers = await Promise.allSettled(rivals.map((one) => one.audit()));
  expect(answers.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  await expect(Promise.all(rivals.map((one) => one.audit()))).rejects.toMatchObject({ code: 'taken-over' });

  await expect(first.commit([key])).rejects.toMatchObject({ code: 'taken-over' });
  await expect(first.poll({ cursor: undefined, follow: [] })).rejects.toMatchObject({ code: 'taken-over' });
  const late = await ground.open({ holder: { epoch: 3, name: 'late' } });
  await expect(late.commit([key])).rejects.toMatchObject({ code: 'taken-over' });
  // The attempt was never started.
  const { records } = await looking.audit();
  expect(records.find((record) => record.key === key)?.state).toBe('prepared');
  const files = readdirSync(ground.root, { recursive: true, encoding: 'utf8' });
  expect(
    files
      .filter((name) => /(^|\/)holder\.\d+$/.test(name))
      .map((name) => name.replace(/^.*holder/, 'holder'))
      .sort(),
  ).toEqual(['holder.1', 'holder.2', 'holder.3', 'holder.4']);
});

it('recalls the ad and the environment of an attempt as they were sent', { timeout: 60_000 }, async () => {
  ground = await localFork();
  const site = await ground.open();
  const key = freshKey();
  const env = { PLAIN: 'a', ODD: 'two\nlines; "quoted" $(x) ü \\ %41' };
  const job = ['Iwd = "/home/me/a b"', 'Arguments = "%41 \\"x\\" ü"', 'Odd-Name = 1', 'JobUniverse = 9'];
  await site.prepare([spec(key, { ...run, env, ads: { job, machine: [] } })]);
  const [recalled, ...more] = (await site.recall?.([key, freshKey()])) ?? [];
  expect(more).toEqual([]);
  expect(recalled?.key).toBe(key);
  expect(Math.abs((recalled?.prepared ?? 0) - Date.now() / 1000)).toBeLessThan(60);
  expect(recalled?.env).toEqual(env);
  expect(recalled?.attrs).toEqual({ Iwd: '"/home/me/a b"', Arguments: '"%41 \\"x\\" ü"', JobUniverse: '9' });
});

it('records of a later version are left alone, with a sentence', { timeout: 60_000 }, async () => {
  ground = await localFork();
  const first = await ground.open({ holder: { epoch: 1, name: 'first' } });
  await first.prepare([spec(freshKey(), run)]);
  const files = () => readdirSync(ground.root, { recursive: true, encoding: 'utf8' }).toSorted();
  const version = files().find((name) => /(^|\/)version$/.test(name)) ?? '';
  expect(readFileSync(join(ground.root, version), 'utf8')).toBe('1\n');
  writeFileSync(join(ground.root, version), '2\n');
  const before = files().filter((name) => !/(^|\/)tmp(\/|$)/.test(name));
  const second = await ground.open({ holder: { epoch: 2, name: 'second' } });
  await expect(second.audit()).rejects.toMatchObject({
    code: 'state-version',
    message: expect.stringContaining('(records of version 2; this one supports 1)'),
  });
  expect(files().filter((name) => !/(^|\/)tmp(\/|$)/.test(name))).toEqual(before);
});
