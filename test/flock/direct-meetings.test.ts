import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { DirectHome } from '../../src/pool/wire/direct-wire.ts';
import { reach } from '../../src/reverse-connection/reach.ts';
import { greetHome } from '../../src/reverse-connection/secure.ts';
import { until } from '../agent/agent.ts';
import { DirectEnds, FILES, KEY, OTHER, read, sha256 } from './direct-ends.ts';

let ends: DirectEnds;
beforeEach(async () => {
  ends = await new DirectEnds().open();
  ends.mayDial = true;
  // The lender's agreement has no address.
  ends.tell = () => Promise.reject(new Error('the agreement has no address that a worker could dial'));
});
afterEach(() => ends.close());

/** Whoever connects to the lender's port. */
async function dial({ name, secret }: Pick<DirectHome, 'name' | 'secret'>): Promise<void> {
  const raw = await reach({ host: '127.0.0.1', port: ends.lendersPort.port }, 5000);
  const stream = await greetHome(raw, { worker: name, key: Buffer.from(secret, 'hex'), patienceMs: 5000 });
  stream.destroy();
}

describe('results of a job at a partner that cannot dial us', () => {
  it('come from the worker, which we meet at the partner’s gateway; for the next job that way is the first', async () => {
    const large = Buffer.alloc(5e6, 'abcdefghijklmnopqrstuvwxyz');
    writeFileSync(join(ends.dir, KEY, 'work', 'large'), large);
    await ends.results.ask(FILES);
    const offsets = Array.from({ length: 20 }, (_, i) => i * 262_144).filter((offset) => offset < large.length);
    const pieces = await Promise.all(
      offsets.map(async (offset) => (await ends.results.ask(read('work/large', 262_144, offset))).bytes),
    );
    expect(sha256(Buffer.concat(pieces))).toBe(sha256(large));
    await ends.results.ask({ ...FILES, key: OTHER });
    expect([ends.told.length, ends.met.length, ends.byGateways, ends.results.links]).toEqual([1, 2, [], 2]);
  });

  it.each([
    ['is of an earlier version', () => void (ends.version = 2)],
    ['has no address in our agreement', () => void (ends.mayDial = false)],
    ['has a worker that cannot come', () => void ends.runs.delete(KEY)],
    ['has a port that we do not reach', () => ends.lendersPort.close()],
  ])('come by the gateways if it %s', async (_what, spoil) => {
    spoil();
    expect((await ends.results.ask(FILES)).files).toMatchObject([{ name: 'by-gateways' }]);
    expect(ends.results.links).toBe(0);
  });

  it('go on by the gateways when the worker is away', async () => {
    await ends.results.ask(FILES);
    ends.worker.end(KEY, 'it is over');
    await until('the end of the connection', () => ends.results.links === 0 || undefined);
    ends.runs.delete(KEY);
    expect((await ends.results.ask(read('work/out', 3))).bytes.toString()).toBe('gat');
  });

  it('are opened to one connection of either side, by its secret', async () => {
    await ends.results.ask(FILES);
    const [used] = ends.met;
    if (!used) throw new Error('the worker was told nothing');
    await expect(dial(used)).rejects.toThrow(/did not know our token/);
    const waiting = ends.meetings.open({ name: 'a', secret: 'ab'.repeat(32) }, { host: 'h', port: 1 }, async (home) => {
      await expect(dial({ ...home, secret: 'cd'.repeat(32) })).rejects.toThrow(/did not know our token/);
      throw new Error('it cannot');
    });
    await expect(waiting).rejects.toThrow('it cannot');
    await expect(dial({ name: 'a', secret: 'ab'.repeat(32) })).rejects.toThrow(/did not know our token/);
    expect(ends.turnedAway).toHaveLength(3);
  });
});
