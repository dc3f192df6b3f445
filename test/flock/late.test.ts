import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { JUST_TRUE } from '../pool/just-true.ts';
import { TwoSides } from './two-sides.ts';

const KEY = 'a.1.0.1';
const SHA = 'ab'.repeat(32);
const PIECE = 1 << 18;

describe('a partner that took a job and has not started it after a minute', () => {
  let dir = '';
  let sides: TwoSides;
  beforeEach(async () => {
    dir = mkdtempSync(join(tmpdir(), 'limit-'));
    const path = join(dir, 'in');
    writeFileSync(path, Buffer.alloc(4 * PIECE));
    sides = new TwoSides();
    const blob = { sha256: SHA, bytes: 4 * PIECE, path };
    const file = { kind: 'file', name: 'in', file: { kind: 'blob', blob }, executable: false } as const;
    sides.grant(KEY, { ...JUST_TRUE, inputs: [file] });
    await sides.settle();
    if (sides.borrower.get(KEY)?.phase !== 'committed') throw new Error('the partner did not take it');
  });
  afterEach(() => rmSync(dir, { recursive: true, force: true }));

  const fetch = (bytes: number) => sides.borrower.piece('p', { key: KEY, sha256: SHA, offset: 0, bytes });
  const isCalledBack = () => sides.borrower.get(KEY)?.cancelling === 'if-not-started';
  const pass = (seconds: number) => {
    sides.clock += seconds * 1000;
    sides.borrower.tick('p', 0);
  };

  it('gives it back, if it fetches none of its inputs', () => {
    pass(59);
    expect(isCalledBack()).toBe(false);
    pass(2);
    expect(isCalledBack()).toBe(true);
    expect(sides.refusals).toEqual(['start']);
  });

  it('keeps it while it fetches inputs, and for a minute after', async () => {
    for (let piece = 0; piece < 4; piece++) {
      pass(50);
      await fetch(PIECE);
      expect(isCalledBack()).toBe(false);
    }
    pass(59);
    expect(isCalledBack()).toBe(false);
    pass(2);
    expect(isCalledBack()).toBe(true);
  });

  it('gives it back, if it fetches them byte by byte', async () => {
    for (let byte = 0; byte < 2; byte++) {
      pass(50);
      if (!isCalledBack()) await fetch(1);
    }
    expect(isCalledBack()).toBe(true);
  });
});
