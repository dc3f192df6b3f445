import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { withLooked } from '../../src/commands/show/progress.ts';
import type { Gryphus } from '../../src/index.ts';

const terminal = process.stderr.isTTY;
let written: string[] = [];
beforeEach(() => {
  vi.useFakeTimers();
  written = [];
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => written.push(String(text)) > 0);
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  process.stderr.isTTY = terminal;
});

const gryphus = { totals: async () => ({ jobs: 4000 }) } as unknown as Gryphus;

async function look(looked: ((jobs: number) => void) | undefined): Promise<string> {
  looked?.(1000);
  await vi.advanceTimersByTimeAsync(600);
  looked?.(2000);
  await vi.advanceTimersByTimeAsync(600);
  return 'done';
}

it('how many jobs have been looked at is shown at a terminal, and cleared', async () => {
  process.stderr.isTTY = true;
  expect(await withLooked(gryphus, look)).toBe('done');
  expect(written.join('')).toMatch(/25 % 1000 of 4000 jobs looked at[^]*75 % 3000 of 4000 jobs looked at\r\u001b\[K$/);
});

it('nothing is shown elsewhere, or of what is done at once', async () => {
  process.stderr.isTTY = false;
  expect(await withLooked(gryphus, look)).toBe('done');
  process.stderr.isTTY = true;
  await withLooked(gryphus, async (looked) => looked?.(4000));
  expect(written).toEqual([]);
});
