import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, request, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GryphusError } from '../../src/errors.ts';
import { Inflow } from '../../src/web/inflow.ts';
import { sendItems } from '../../src/web/items.ts';

const dir = mkdtempSync(join(tmpdir(), 'gry-'));
const socketPath = join(dir, 'socket');
let items: () => AsyncGenerator<string>;
let quiet = false;
let server: Server;
beforeAll(
  () =>
    new Promise<void>((resolve) => {
      server = createServer((_, response) => {
        sendItems(items(), () => response, quiet).catch(() => response.writeHead(500).end());
      }).listen(socketPath, resolve);
    }),
);
afterAll(() => {
  server.close();
  rmSync(dir, { recursive: true });
});

function ask(): Promise<{ readonly status: number | undefined; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const sent = request({ socketPath }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (some: string) => (text += some));
      response.once('end', () => resolve({ status: response.statusCode, text })).once('error', reject);
    });
    sent.once('error', reject).end();
  });
}

describe('a stream of items', () => {
  it('comes whole, whatever the items are and whenever they come, and says whether it is', async () => {
    // What may stand in a text, and lines longer than a socket takes at once.
    const item = fc.oneof(fc.jsonValue(), fc.string({ unit: 'binary' }), fc.constant('\n\u2028"'.repeat(30_000)));
    const each = fc.record({ item, later: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(fc.array(each), fc.boolean(), fc.boolean(), async (all, fails, begins) => {
        quiet = begins;
        items = async function* () {
          for (const one of all) {
            if (one.later) await new Promise(setImmediate);
            yield JSON.stringify(one.item);
          }
          if (fails) throw new GryphusError('site-unknown', 'It failed.');
        };
        const { status, text } = await ask();
        expect(status).toBe(fails && !begins && all.length === 0 ? 500 : 200);
        if (status === 500) return;
        expect(text.endsWith('\n')).toBe(true);
        const lines = text
          .slice(0, -1)
          .split('\n')
          .map((line) => JSON.parse(line) as unknown);
        const error = { code: 'site-unknown', message: 'It failed.', suggestions: [] };
        const wanted = all.map((one) => ({ item: JSON.parse(JSON.stringify(one.item)) as unknown }));
        expect(lines).toEqual([...wanted, fails ? { error } : { end: true }]);
      }),
      { numRuns: 60 },
    );
  });

  it('waits for a reader that is slow, and ends when it leaves', async () => {
    let made = 0;
    const ended = new Promise<void>((resolve) => {
      items = async function* () {
        try {
          for (;;) {
            await new Promise(setImmediate);
            made += 1;
            yield JSON.stringify('x'.repeat(100_000));
          }
        } finally {
          resolve();
        }
      };
    });
    const stalled = await new Promise<() => void>((resolve, reject) => {
      const sent = request({ socketPath }, (response) => {
        response.pause();
        resolve(() => sent.destroy());
      });
      sent.once('error', reject).end();
    });
    // Until it no longer makes any.
    let before: number;
    do {
      before = made;
      await new Promise((resolve) => setTimeout(resolve, 100));
    } while (before !== made && before < 1000);
    expect(made).toBeLessThan(100);
    stalled();
    await ended;
  });
});

describe('tasks that are added', () => {
  it('are read as they come, until the end', async () => {
    const inflow = new Inflow<number>();
    inflow.add([1, 2]);
    const seen: number[] = [];
    for await (const one of inflow.read()) {
      seen.push(one);
      if (one === 2) setImmediate(() => inflow.add([3]));
      if (one === 3) inflow.close();
    }
    expect(seen).toEqual([1, 2, 3]);
  });

  it('let whoever adds them wait while there are many', async () => {
    const inflow = new Inflow<number>();
    inflow.add([1, 2, 3]);
    const { signal } = new AbortController();
    let waiting: number | undefined;
    const below = inflow.below(1, signal).then((left) => (waiting = left));
    const reader = inflow.read();
    await reader.next();
    await new Promise(setImmediate);
    expect(waiting).toBeUndefined();
    await reader.next();
    expect(await below).toBe(1);
    const left = new AbortController();
    inflow.add([4, 5, 6]);
    const other = inflow.below(1, left.signal);
    left.abort();
    expect(await other).toBe(4);
  });
});
