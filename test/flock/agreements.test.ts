import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AgreementBook, loadAgreement, pauseAgreement, writeFlockKey } from '../../src/config/agreements.ts';
import { lendable, jobRefusal, type LendingState } from '../../src/flock/clauses.ts';
import type { Agreement } from '../../src/config/agreements.ts';

let dir = '';
const paths = () => ({ configDir: dir });
const KEY = { id: 'abcdefgh', key: 'ab'.repeat(32) };

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'flock-'));
  chmodSync(dir, 0o700);
  mkdirSync(join(dir, 'flock'), { mode: 0o700 });
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const write = (text: string, name = 'p') => writeFileSync(join(dir, 'flock', `${name}.toml`), text, { mode: 0o600 });
const load = (text: string): Promise<Agreement> => {
  write(text);
  return loadAgreement(paths(), 'p');
};

describe('an agreement', () => {
  it.each([
    ['to = 1\n', /flock\/p\.toml, line 1: 'to' must be true or false/],
    ['from = true\nmaks = 3\n', /line 2: unknown key 'maks'/],
    ['from = true\nhours = "ClockMin <"\n', /line 2: 'hours' must be a ClassAd expression/],
    ['url = "x"\n', /is not an address and port/],
    ['via = "-oProxyCommand=x"\n', /line 1: 'via' must be a host of ssh/],
    ['from = true\nFLOCK_FROM = "a, b"\n', /line 2: FLOCK_FROM is not used in an agreement/],
    ['flock_increment = 1\n', /line 1: flock_increment is not used/],
    ['balance = "year"\n', /'balance' must be one of/],
    ['to = = 1\n', /line 1, column/],
  ])('%j is refused with its line', async (text, message) => {
    await expect(load(text)).rejects.toThrow(message);
  });

  it('of the example is one', async () => {
    const example = readFileSync(resolve(import.meta.dirname, '../../examples/flock/physics.toml'), 'utf8');
    expect(await load(example)).toMatchObject({ to: true, from: true, max: 8, threshold: 2, slack: 100 });
  });

  it('that has become wrong leaves its last version in force; a key that others can read is none', async () => {
    const wrong: string[] = [];
    const book = new AgreementBook(paths(), (message) => wrong.push(message));
    const keyFile = join(dir, 'flock', 'p.key');
    write('from = true\n');
    writeFlockKey(keyFile, KEY);
    expect(await book.look()).toBe(true);
    expect(book.partners.get('p')).toMatchObject({ agreement: { from: true, max: 8 }, key: KEY });
    expect(await book.look()).toBe(false);
    write('from = "yes"\n');
    await book.look();
    expect(book.partners.get('p')?.agreement.from).toBe(true);
    expect(wrong).toHaveLength(1);
    chmodSync(keyFile, 0o644);
    await book.look();
    expect(book.partners.size).toBe(0);
    expect(book.problems.get('p')).toMatch(/chmod 600|others can read it/);
    rmSync(join(dir, 'flock', 'p.toml'));
    await book.look();
    expect(book.problems.size).toBe(0);
  });

  it('is paused and resumed without touching the rest', async () => {
    write('# mine\nfrom = true\n');
    await pauseAgreement(paths(), 'p', true);
    expect((await loadAgreement(paths(), 'p')).paused).toBe(true);
    await pauseAgreement(paths(), 'p', false);
    expect((await loadAgreement(paths(), 'p')).paused).toBe(false);
  });
});

describe('what is lent', () => {
  const state: LendingState = {
    lent: 0,
    idle: 10,
    borrowed: 0,
    ahead: 0,
    now: new Date(2026, 0, 7, 3, 0).getTime() / 1000,
  };

  it.each([
    ['from = true', {}, 8],
    ['from = true\nmax = 4', { lent: 1 }, 3],
    ['from = true\nthreshold = 7', {}, 3],
    ['from = true\nhours = "ClockMin < 240"', {}, 8],
    ['from = true\nbalance = "day"\nslack = 2.0', { ahead: 1.9 }, 8],
    ['', {}, 'from'],
    ['from = true\npaused = true', {}, 'paused'],
    ['from = true\nmax = 4', { lent: 4 }, 'max'],
    ['from = true\nthreshold = 10', {}, 'threshold'],
    ['from = true', { idle: 0 }, 'idle'],
    ['from = true\nhours = "ClockMin > 240"', {}, 'hours'],
    ['from = true\nbalance = "day"\nslack = 2.0', { ahead: 2 }, 'balance'],
    ['from = true', { borrowed: 1 }, 'both-ways'],
  ] as const)('by %j and %j is %j', async (text, more, expected) => {
    const answer = lendable(await load(text), { ...state, ...more });
    expect('cores' in answer ? answer.cores : answer.clause).toBe(expected);
  });

  it.each([
    ['', undefined],
    ['users = ["ann"]', undefined],
    ['users = ["bob"]', 'users'],
    ['deny = ["ann"]', 'deny'],
    ['max_input = 5', 'max_input'],
    ['requirements = "TARGET.RequestMemory < MY.Memory"', undefined],
    ['requirements = "TARGET.RequestMemory > MY.Memory"', 'requirements'],
    ['requirements = "TARGET.Nothing"', 'requirements'],
  ])('to a job by %j is refused by %j', async (text, clause) => {
    const job = {
      user: 'ann',
      ad: { RequestMemory: '10' },
      size: { cpus: 1, memoryMb: 10, diskKb: 1, gpus: 0 },
      inputBytes: 6,
    };
    expect(jobRefusal(await load(text), job, [{ Memory: '20' }], 0)?.clause).toBe(clause);
  });
});
