import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { getEventListeners } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { followLog } from '../../src/commands/follow-log.ts';

it('a log that is followed for long costs one listener', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'gry-'));
  const file = join(dir, 'log');
  const event = (proc: number) => `000 (001.00${proc}.000) 2026-11-22 15:39:45 Job submitted from host: <vm>\n...\n`;
  writeFileSync(file, event(0));
  const stop = new AbortController();
  const events = followLog(file, true, stop.signal);
  await events.next();
  const listeners: number[] = [];
  for (let proc = 1; proc < 6; proc++) {
    const next = events.next();
    // It has read everything so far, and waits.
    await new Promise((resume) => setImmediate(resume));
    listeners.push(getEventListeners(stop.signal, 'abort').length);
    appendFileSync(file, event(proc));
    await next;
  }
  stop.abort();
  expect(new Set(listeners).size).toBe(1);
  rmSync(dir, { recursive: true });
});
