import { writeFileSync } from 'node:fs';
import type { Duplex } from 'node:stream';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { DirectHome } from '../../src/pool/wire/direct-wire.ts';
import { encodeFrame, FrameReader, type WireMessage } from '../../src/pool/wire/frames.ts';
import { reach } from '../../src/reverse-connection/reach.ts';
import { greetHome } from '../../src/reverse-connection/secure.ts';
import { until } from '../agent/agent.ts';
import { DirectEnds, FILES, KEY, OTHER, read, sha256 } from './direct-ends.ts';

let ends: DirectEnds;
beforeEach(async () => {
  ends = await new DirectEnds().open();
});
afterEach(() => ends.close());

/** Connects as a worker does, by whatever name and secret. */
async function dial({ name, secret }: Pick<DirectHome, 'name' | 'secret'>): Promise<Duplex> {
  const raw = await reach({ host: '127.0.0.1', port: ends.port.port }, 5000);
  return greetHome(raw, { worker: name, key: Buffer.from(secret, 'hex'), patienceMs: 5000 });
}

/** A worker that answers each question with what it likes. */
function liar(answer: (question: WireMessage & { readonly id: number }) => readonly [object, Buffer?]) {
  ends.tell = async (_key, to) => {
    const stream = await dial(to);
    stream.on('error', () => undefined);
    const reader = new FrameReader((message) => {
      const [said, bytes] = answer(message as WireMessage & { id: number });
      for (const part of encodeFrame(said as WireMessage, bytes)) stream.write(part);
    });
    stream.on('data', (data: Buffer) => reader.push(data));
  };
}

describe('results of a job at a partner', () => {
  it('come from the worker itself, by one connection and nothing by the gateways', async () => {
    const listed = await ends.results.ask(FILES);
    expect(listed.files).toMatchObject([{ name: 'out', sha256: sha256(`result of ${KEY}`) }]);
    expect((await ends.results.ask(read('work/out', 100))).bytes.toString()).toBe(`result of ${KEY}`);
    expect((await ends.results.ask(read('stdout', 6, 10))).bytes.toString()).toBe('ours.1');
    expect([ends.told.length, ends.byGateways, ends.results.links]).toEqual([1, [], 1]);
  });

  it('of a large file come whole, many pieces at once', async () => {
    const large = Buffer.alloc(5e6, 'abcdefghijklmnopqrstuvwxyz');
    writeFileSync(join(ends.dir, KEY, 'work', 'large'), large);
    const offsets = Array.from({ length: 20 }, (_, i) => i * 262_144).filter((offset) => offset < large.length);
    const pieces = await Promise.all(
      offsets.map(async (offset) => (await ends.results.ask(read('work/large', 262_144, offset))).bytes),
    );
    expect(sha256(Buffer.concat(pieces))).toBe(sha256(large));
    expect([ends.told.length, ends.byGateways]).toEqual([1, []]);
  });

  it('come by the gateways from a partner of the first version, which is asked nothing new', async () => {
    ends.version = 1;
    await ends.results.ask(FILES);
    await ends.results.ask(read('stdout', 3));
    expect([ends.told, ends.byGateways]).toEqual([[], ['files', 'read']]);
  });

  it.each([
    [
      'cannot dial',
      () => {
        const { port } = ends.port;
        ends.port.close();
        ends.tell = (key, to) => ends.worker.open(key, { ...to, port });
      },
    ],
    [
      'has another secret',
      () => {
        ends.tell = (key, to) => ends.worker.open(key, { ...to, secret: 'ab'.repeat(32) });
      },
    ],
    ['does not know the job any more', () => void ends.runs.delete(KEY)],
  ])('come by the gateways if the worker %s', async (_what, spoil) => {
    spoil();
    expect((await ends.results.ask(FILES)).files).toMatchObject([{ name: 'by-gateways' }]);
    expect((await ends.results.ask(read('work/out', 3))).bytes.toString()).toBe('gat');
    expect([ends.told.length, ends.byGateways, ends.results.links]).toEqual([1, ['files', 'read'], 0]);
  });

  it('go on by the gateways if the line is cut in the middle, where the same is listed first', async () => {
    writeFileSync(join(ends.dir, KEY, 'work', 'large'), Buffer.alloc(3e6));
    ends.cutAfter = 1e6;
    await ends.results.ask(FILES);
    const pieces = Array.from({ length: 12 }, (_, i) => ends.results.ask(read('work/large', 262_144, i * 262_144)));
    const came = await Promise.all(pieces);
    expect(came.some(({ bytes }) => bytes.toString() === 'gat')).toBe(true);
    expect(ends.byGateways[0]).toBe('files');
    expect(ends.byGateways.filter((what) => what === 'files')).toHaveLength(1);
    // What has failed is not tried again for that job.
    const asked = ends.byGateways.length;
    await ends.results.ask(read('stdout', 3));
    expect([ends.told.length, ends.byGateways.length]).toEqual([1, asked + 1]);
  });

  it('come by another connection if the first ended while nothing was asked', async () => {
    await ends.results.ask(FILES);
    ends.cut();
    await until('the end of the connection', () => ends.results.links === 0 || undefined);
    expect((await ends.results.ask(read('work/out', 6))).bytes.toString()).toBe('result');
    expect([ends.told.length, ends.byGateways]).toEqual([2, []]);
  });
});

describe('whoever connects to the gateway', () => {
  it('needs the secret of an attempt, which opens one connection, and none after the end', async () => {
    await ends.results.ask(FILES);
    const [used] = ends.told;
    if (!used) throw new Error('the worker was told nothing');
    await expect(dial(used)).rejects.toThrow(/did not know our token/);
    await expect(dial({ name: 'direct.guessed', secret: used.secret })).rejects.toThrow(/did not know our token/);
    ends.tell = () => new Promise(() => undefined);
    const waiting = ends.results.ask({ ...FILES, key: OTHER });
    await until('the next secret', () => ends.told[1]);
    const [, next] = ends.told;
    if (!next) throw new Error('the worker was told nothing');
    await expect(dial({ ...next, secret: used.secret })).rejects.toThrow(/did not know our token/);
    // Nobody wants the second job's results any more.
    ends.results.tick((key) => key === KEY);
    expect((await waiting).files).toMatchObject([{ name: 'by-gateways' }]);
    await expect(dial(next)).rejects.toThrow(/did not know our token/);
    expect(ends.turnedAway).toHaveLength(4);
  });

  it.each([
    ['answers what it was not asked', () => [{ t: 'answer', id: 77, ok: true }] as const],
    [
      'sends more than it was asked for',
      ({ id }: { readonly id: number }) => [{ t: 'answer', id, ok: true }, Buffer.alloc(7)] as const,
    ],
    ['sends what is no answer', () => [{ t: 'sync', held: [] }] as const],
    [
      'names a digest that is none',
      ({ id }: { readonly id: number }) =>
        [
          { t: 'answer', id, ok: true, files: [{ name: 'x', bytes: 1, executable: false, sha256: '../../x' }] },
        ] as const,
    ],
    [
      'sends too large frames',
      ({ id }: { readonly id: number }) => [{ t: 'answer', id, ok: true }, Buffer.alloc(3 << 20)] as const,
    ],
  ])('is cut off if it %s, and what comes by the gateways counts', async (_what, answer) => {
    liar(answer);
    expect((await ends.results.ask(read('stdout', 6))).bytes.toString()).toBe('gat');
    await until('the end of the connection', () => ends.results.links === 0 || undefined);
  });
});

describe('a worker that brings results itself', () => {
  it('answers of that attempt only, and nothing that is not the job’s', async () => {
    const secret = join(ends.dir, 'secret');
    writeFileSync(secret, 'of the owner');
    for (const path of [
      `work/../../${OTHER}/work/out`,
      'work/../../secret',
      `../${OTHER}/stdout`,
      secret,
      'work/..',
      'work',
      'script',
    ]) {
      ends.byGateways.length = 0;
      ends.results.close('the next');
      expect((await ends.results.ask(read(path, 3))).bytes.toString()).toBe('gat');
      expect([path, ...ends.byGateways]).toEqual([path, 'read']);
    }
  });

  it('ends the connection with the attempt', async () => {
    await ends.results.ask(FILES);
    ends.worker.end(KEY, 'it is over');
    await until('the end of the connection', () => ends.results.links === 0 || undefined);
  });

  it('does not connect for an attempt that was ended while it dialled', async () => {
    ends.tell = async (key, to) => {
      const opening = ends.worker.open(key, to);
      ends.worker.end(key, 'the agreement is over');
      await opening;
      throw new Error('it may not');
    };
    expect((await ends.results.ask(FILES)).files).toMatchObject([{ name: 'by-gateways' }]);
  });

  it('shows nothing of a job that ran under the account of the worker itself', async () => {
    const run = ends.runs.get(KEY);
    if (run) ends.runs.set(KEY, { ...run, dir: { ...run.dir, uid: undefined } });
    expect((await ends.results.ask(FILES)).files).toMatchObject([{ name: 'by-gateways' }]);
  });
});
