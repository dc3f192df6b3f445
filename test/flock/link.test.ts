import type { Duplex } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { FlockMessage } from '../../src/flock/flock-wire.ts';
import { FlockLink } from '../../src/flock/link.ts';
import { encodeFrame, FrameReader } from '../../src/pool/wire/frames.ts';
import { until } from '../agent/agent.ts';
import { pair } from '../pool/wire-pair.ts';

describe('a link', () => {
  function link(
    onFault: (message: string) => void,
    onHello: (agent: string) => void = () => undefined,
    [here, there] = pair(),
  ) {
    const heard: FlockMessage[] = [];
    const made = new FlockLink({
      agent: 'me',
      name: 'p',
      dial: () => undefined,
      onHello,
      onUp: () => undefined,
      onDown: () => undefined,
      take: (message) => void heard.push(message),
      onFault,
      isBusy: () => true,
      onConfirmed: () => undefined,
    });
    made.accept(here);
    const asked: number[] = [];
    const reader = new FrameReader((message) => {
      if (message.t === 'ask' && 'id' in message) asked.push(Number(message.id));
    });
    there.on('data', (data: Buffer) => reader.push(data));
    const say = (message: unknown) => {
      for (const part of encodeFrame(message as FlockMessage)) there.write(part);
    };
    const closed = new Promise<void>((resolve) => there.once('close', resolve).once('end', resolve));
    return { made, heard, asked, say, closed };
  }

  it('hears nothing before the greeting', async () => {
    const faults: string[] = [];
    const { made, heard, say, closed } = link((message) => faults.push(message));
    say({ t: 'list', kinds: [] });
    await closed;
    made.close('over');
    expect([heard, faults]).toEqual([[], ["'list' before the greeting"]]);
  });

  it('is cut when it is flooded', async () => {
    const faults: string[] = [];
    const { made, say, closed } = link((message) => faults.push(message));
    say({ t: 'hello', version: 1, agent: 'a', name: 'n' });
    for (let i = 0; i < 25_000; i++) say({ t: 'commit', key: 'a.1.0.1', round: i });
    await closed;
    made.close('over');
    expect(faults).toEqual(['it sends too many messages']);
  });

  it('is not cut for answers that we asked for, and for as many questions', async () => {
    const faults: string[] = [];
    const { made, heard, asked, say } = link((message) => faults.push(message));
    say({ t: 'hello', version: 1, agent: 'a', name: 'n' });
    await turn();
    const ask = () => made.ask({ what: 'blob', key: 'a.1.0.1', sha256: '', offset: 0, bytes: 1 });
    for (let n = 0; n < 25_000; n += 100) {
      const all = Array.from({ length: 100 }, ask);
      await turn();
      for (const id of asked.splice(0)) say({ t: 'answer', id, ok: true });
      await Promise.all(all);
      for (let id = n; id < n + 100; id++)
        say({ t: 'ask', id, what: 'read', key: 'a.1.0.1', path: 'stdout', offset: 0, bytes: 1 });
    }
    expect([made.up, heard.length, faults]).toEqual([true, 25_000, []]);
    for (let id = 0; id < 25_000; id++) say({ t: 'answer', id, ok: true });
    await turn();
    expect([made.up, faults]).toEqual([false, ['it sends too many messages']]);
    made.close('over');
  });

  it('is cut when 64 MB wait that the partner does not read', async () => {
    const faults: string[] = [];
    const [here, there] = pair();
    // Nothing that is written is ever taken.
    here._write = () => undefined;
    const { made, heard, say } = link((message) => faults.push(message), undefined, [here, there]);
    say({ t: 'hello', version: 1, agent: 'a', name: 'n' });
    await turn();
    const piece = Buffer.alloc(1 << 20);
    const send = (pieces: number) => {
      for (let i = 0; i < pieces; i++) made.send({ t: 'answer', id: i, ok: true }, piece);
    };
    send(63);
    await turn();
    say({ t: 'list', kinds: [] });
    await turn();
    expect([made.up, heard.length, faults]).toEqual([true, 1, []]);
    send(2);
    await turn();
    say({ t: 'list', kinds: [] });
    await turn();
    expect([made.up, heard.length, faults]).toEqual([false, 1, ['it does not read what it asks for']]);
    made.close('over');
  });

  it('asks at most 128 questions at once, and the others later', async () => {
    const { made, say, asked } = link(() => undefined);
    say({ t: 'hello', version: 1, agent: 'a', name: 'n' });
    await turn();
    const all = Array.from({ length: 300 }, (_, offset) =>
      made.ask({ what: 'blob', key: 'a.1.0.1', sha256: '', offset, bytes: 1 }),
    );
    const counts: number[] = [];
    for (let answered = 0; answered < 300; answered++) {
      await turn();
      counts.push(asked.length - answered);
      say({ t: 'answer', id: asked[answered], ok: true });
    }
    await Promise.all(all);
    made.close('over');
    expect(Math.max(...counts)).toBe(128);
  });

  /** A link that dials; each dial hands the other end out, where `greeting` is said at once if it is there. */
  function dialling(greeting?: object) {
    const versions: unknown[] = [];
    const ends: Duplex[] = [];
    const made = new FlockLink({
      agent: 'me',
      name: 'p',
      dial: async () => {
        const [here, there] = pair();
        ends.push(there);
        const say = (message: object) => {
          for (const part of encodeFrame(message as FlockMessage)) there.write(part);
        };
        const reader = new FrameReader((message) => {
          if (message.t !== 'hello' || !('version' in message)) return;
          versions.push(message.version);
          // The first version closes the link if it is not greeted with its own.
          if (greeting && message.version !== 1) there.end();
          if (!greeting) say({ t: 'hello', version: message.version, agent: 'a', name: 'n' });
        });
        there.on('data', (data: Buffer) => reader.push(data));
        if (greeting) say(greeting);
        return here;
      },
      onHello: () => undefined,
      onUp: () => undefined,
      onDown: () => undefined,
      take: () => undefined,
      onFault: () => undefined,
      isBusy: () => true,
      onConfirmed: () => undefined,
    });
    made.open();
    return { made, versions, ends };
  }

  it('speaks the newest version that both speak, whoever has dialled', async () => {
    const { made, versions } = dialling();
    await until('the link', () => made.up || undefined);
    expect([made.version, versions]).toEqual([4, [4]]);
    made.close('over');
    for (const [theirs, both] of [
      [1, 1],
      [2, 2],
      [3, 3],
      [4, 4],
      [9, 4],
    ]) {
      const dialled = link(() => undefined);
      dialled.say({ t: 'hello', version: theirs, agent: 'a', name: 'n' });
      await turn();
      expect([dialled.made.up, dialled.made.version]).toEqual([true, both]);
      dialled.made.close('over');
    }
  });

  it('dials a partner of the first version again with that one, and the next time with its own', async () => {
    const { made, versions, ends } = dialling({ t: 'hello', version: 1, agent: 'a', name: 'n' });
    await until('the link', () => made.up || undefined);
    expect([made.version, versions]).toEqual([1, [4, 1]]);
    ends.at(-1)?.destroy();
    ends.at(-1)?.push(null);
    made.cut('the test cuts it');
    made.open();
    await until('the next greeting', () => versions.length > 2 || undefined);
    expect(versions[2]).toBe(4);
    made.close('over');
  });

  it('is not made with a partner of no version', async () => {
    const { made, say, closed } = link(() => undefined);
    say({ t: 'hello', version: 0, agent: 'a', name: 'n' });
    await closed;
    expect([made.up, made.trouble]).toEqual([false, 'its flock speaks version 0, ours 1 to 4']);
    made.close('over');
  });

  it('is cut when another agent has the key', async () => {
    const { made, heard, say, closed } = link(
      () => undefined,
      (agent) => {
        if (agent !== 'known') throw new Error('another agent');
      },
    );
    say({ t: 'hello', version: 1, agent: 'thief', name: 'n' });
    await closed;
    made.close('over');
    expect(heard).toEqual([]);
  });
});
