import { describe, expect, it } from 'vitest';
import { ahead } from '../../src/util/ahead.ts';

function counting(end: number, failsAt = Number.POSITIVE_INFINITY) {
  const seen = { given: 0, closed: false };
  async function* source(): AsyncGenerator<number> {
    try {
      for (let i = 0; i < end; i++) {
        await Promise.resolve();
        if (i === failsAt) throw new Error('no more');
        seen.given = i + 1;
        yield i;
      }
    } finally {
      seen.closed = true;
    }
  }
  return { source: source(), seen };
}

async function turns(): Promise<void> {
  for (let i = 0; i < 100; i++) await Promise.resolve();
}

describe('a source that runs ahead', () => {
  it('gives every item once, in order', async () => {
    const got: number[] = [];
    for await (const item of ahead(counting(10).source, 3)) got.push(item);
    expect(got).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });
  it('runs so many items ahead, and no more', async () => {
    const { source, seen } = counting(10);
    const reader = ahead(source, 3);
    await reader.next();
    await turns();
    expect(seen.given).toBe(3);
    await reader.next();
    await turns();
    expect(seen.given).toBe(4);
  });
  it('ends with its reader', async () => {
    const { source, seen } = counting(10);
    for await (const item of ahead(source, 3)) if (item === 1) break;
    expect(seen.closed).toBe(true);
  });
  it('fails in its turn', async () => {
    const got: number[] = [];
    const reading = async () => {
      for await (const item of ahead(counting(10, 4).source, 8)) got.push(item);
    };
    await expect(reading()).rejects.toThrow('no more');
    expect(got).toEqual([0, 1, 2, 3]);
  });
});
