import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Arriving } from '../../src/pool/central-manager/arriving.ts';
import { bringHome } from '../../src/pool/central-manager/shadow.ts';
import { StagingLinks } from '../../src/pool/central-manager/staging-links.ts';
import { Asking } from '../../src/pool/wire/asking.ts';
import { StagingLink, type Wanted } from '../../src/pool/wire/staging-link.ts';
import { type RunSpec, readFromCentralManager, type WireAsk } from '../../src/pool/wire/wire.ts';
import { BlobCache } from '../../src/pool/worker/sandbox.ts';
import { WorkerStagingLinks } from '../../src/pool/worker/staging-links.ts';
import { partOf } from '../../src/staging/place.ts';
import { relay } from '../../src/reverse-connection/relay.ts';
import { acceptHome } from '../../src/reverse-connection/secure.ts';
import { endedAttempt } from './ended-attempt.ts';

const KEY = 'a.1.0.1';
const MB = 1 << 20;
const LARGE = randomBytes(9 * MB + 17);
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

let dir = '';
let servers: Server[];
let ends: (() => void)[];
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'gry-staging-'));
  [servers, ends] = [[], []];
  writeFileSync(join(dir, 'large'), LARGE);
});
afterEach(() => {
  for (const end of ends) end();
  for (const server of servers) server.close();
  rmSync(dir, { recursive: true, force: true });
});

async function listening(take: (socket: Socket) => void, port = false): Promise<{ path: string; port: number }> {
  const server = createServer((socket) => {
    ends.push(() => socket.destroy());
    take(socket);
  });
  servers.push(server);
  const path = join(dir, `s${servers.length}`);
  await new Promise<void>((resolve) => (port ? server.listen(0, '127.0.0.1', resolve) : server.listen(path, resolve)));
  const address = server.address();
  return { path, port: typeof address === 'object' && address ? address.port : 0 };
}

const TOKEN = { token: 'w', secret: 'ab'.repeat(32) };

/** A central manager's end, and a worker's that dials by one kind of way; what the worker was asked. */
async function ground(kind: 'local' | 'socket' | 'relay port' | 'own port' = 'socket') {
  const links = new StagingLinks();
  const strangers: Socket[] = [];
  const take = (socket: Socket) =>
    void links.take(socket).then((taken) => {
      if (!taken) strangers.push(socket);
    });
  let config: ConstructorParameters<typeof WorkerStagingLinks>[0];
  if (kind === 'own port') {
    const inside = await listening(take);
    const key = Buffer.from(TOKEN.secret, 'hex');
    const { port } = await listening(
      (socket) =>
        void acceptHome(socket, { keyOf: (id) => (id === TOKEN.token ? key : undefined) }).then(({ link }) =>
          relay(link, connect(inside.path)),
        ),
      true,
    );
    config = { ...TOKEN, ways: [{ kind: 'port', host: '127.0.0.1', port, own: true }] };
  } else {
    const { path, port } = await listening(take, kind === 'relay port');
    config =
      kind === 'local'
        ? { ...TOKEN, socket: path }
        : { ...TOKEN, ways: [kind === 'socket' ? { kind, path } : { kind: 'port', host: '127.0.0.1', port }] };
  }
  const place = { work: dir, uid: undefined, stream: (name: string) => join(dir, name) };
  const worker = new WorkerStagingLinks(config, (key) => (key === KEY ? { dir: place } : undefined));
  ends.push(() => worker.close());
  const asked: WireAsk[] = [];
  const asking: Asking = new Asking((ask) => {
    // As it is checked when it arrives.
    readFromCentralManager(ask);
    asked.push(ask);
    if (ask.what === 'staging')
      worker.open(ask).then(
        () => asking.take({ t: 'answer', id: ask.id, ok: true }, Buffer.alloc(0)),
        (error: Error) => asking.take({ t: 'answer', id: ask.id, ok: false, message: error.message }, Buffer.alloc(0)),
      );
    return true;
  });
  return { links, worker, asking, asked, strangers };
}

async function all(coming: AsyncIterable<Buffer> | undefined): Promise<Buffer> {
  const got: Buffer[] = [];
  for await (const bytes of coming ?? []) got.push(bytes);
  return Buffer.concat(got);
}

const blob = { sha256: sha256(LARGE), bytes: LARGE.length, path: '' };
const specOf = (path: string): RunSpec => ({
  executable: { kind: 'there', path: '/bin/true' },
  args: [],
  env: {},
  inputs: [{ kind: 'file', name: 'in', executable: false, file: { kind: 'blob', blob: { ...blob, path } } }],
  joinStderr: false,
});

describe('a connection for the large files of an attempt', () => {
  it.each(['local', 'socket', 'relay port', 'own port'] as const)(
    'brings an input and a result, by way of %s',
    async (kind) => {
      const { links, worker, asking } = await ground(kind);
      await links.inputs('w', asking, KEY, () => specOf(join(dir, 'large')));
      expect((await all(worker.input(KEY, blob, 5))).equals(LARGE.subarray(5))).toBe(true);
      // Another file, and another time the same one.
      expect((await all(worker.input(KEY, blob, 8 * MB))).equals(LARGE.subarray(8 * MB))).toBe(true);
      const link = await links.open('w', asking, KEY, 'results');
      const by = link.ask({ what: 'result', path: 'work/large', from: 0, to: LARGE.length });
      const got: Buffer[] = [];
      let next = await by.next();
      for (; next.done !== true; next = await by.next()) got.push(next.value);
      expect([Buffer.concat(got).equals(LARGE), next.value]).toEqual([true, sha256(LARGE)]);
      link.end();
    },
  );

  it('is made by a key that is good for one connection', async () => {
    const { links, asking, asked } = await ground('local');
    const link = await links.open('w', asking, KEY, 'results');
    const [ask] = asked;
    if (ask?.what !== 'staging') throw new Error('it was not asked');
    const path = join(dir, 's1');
    for (const line of [
      `gryphus-staging ${ask.name} ${ask.secret}\n`,
      `gryphus-staging ${ask.name} ${'00'.repeat(32)}\n`,
    ]) {
      const again = connect(path);
      ends.push(() => again.destroy());
      again.write(line);
      await new Promise((resolve) => again.resume().once('close', resolve));
    }
    expect(link.ended).toBe(false);
  });

  it('leaves to others what begins otherwise', async () => {
    const { strangers } = await ground('local');
    const other = connect(join(dir, 's1'));
    ends.push(() => other.destroy());
    other.write('\0\0\0\u0010\0\0\0\0hello');
    await expect.poll(() => strangers.length).toBe(1);
    expect(strangers[0]?.read()?.toString('latin1')).toBe('\0\0\0\u0010\0\0\0\0hello');
  });

  it('gives no other file than the inputs of its job, and none when the job is not its any more', async () => {
    const { links, worker, asking } = await ground();
    let granted: RunSpec | undefined = specOf(join(dir, 'large'));
    await links.inputs('w', asking, KEY, () => granted);
    const first = worker.input(KEY, blob, 0)?.[Symbol.asyncIterator]();
    expect((await first?.next())?.done).toBe(false);
    granted = undefined;
    const rest = async () => {
      for (;;) if ((await first?.next())?.done !== false) return;
    };
    await expect(rest()).rejects.toThrow('cut');
    granted = specOf(join(dir, 'large'));
    const other = await ground();
    await other.links.inputs('w', other.asking, KEY, () => granted);
    await expect(all(other.worker.input(KEY, { ...blob, sha256: sha256(Buffer.from('x')) }, 0))).rejects.toThrow('cut');
  });

  it('is asked for once of an attempt, and not of a worker that could not make one', async () => {
    const { links, asking, asked } = await ground();
    await Promise.all([1, 2, 3].map(() => links.inputs('w', asking, KEY, () => undefined)));
    expect(asked.length).toBe(1);
    let refused = 0;
    const unable: Asking = new Asking((ask) => {
      refused += 1;
      setImmediate(() => unable.take({ t: 'answer', id: ask.id, ok: false, message: 'no way' }, Buffer.alloc(0)));
      return true;
    });
    await links.inputs('x', unable, KEY, () => undefined);
    await expect(links.open('x', unable, 'a.2.0.1', 'results')).rejects.toThrow('lately');
    expect(refused).toBe(1);
  });
});

describe('an input that a worker pulls', () => {
  const pulls = (counted: number[]) => async (_: unknown, offset: number, bytes: number) => {
    counted.push(offset);
    return LARGE.subarray(offset, offset + bytes);
  };

  it('comes by it after its first piece', async () => {
    const { links, worker, asking } = await ground();
    const counted: number[] = [];
    const cache = new BlobCache(join(dir, 'cache'));
    await links.inputs('w', asking, KEY, () => specOf(join(dir, 'large')));
    const path = await cache.pull(blob, pulls(counted), (from) => worker.input(KEY, blob, from));
    expect(readFileSync(path).equals(LARGE)).toBe(true);
    expect(counted).toEqual([0]);
  });

  it('goes on by the other connection when it is cut, and is checked as a whole', async () => {
    const counted: number[] = [];
    const cache = new BlobCache(join(dir, 'cache'));
    const cut = async function* (from: number) {
      yield LARGE.subarray(from, 3 * MB);
      throw new Error('cut');
    };
    const path = await cache.pull(blob, pulls(counted), cut);
    expect(readFileSync(path).equals(LARGE)).toBe(true);
    expect([counted[0], counted[1], Math.min(...counted.slice(1))]).toEqual([0, 3 * MB, 3 * MB]);
    const wrong = async function* (from: number) {
      yield Buffer.alloc(LARGE.length - from);
    };
    await expect(new BlobCache(join(dir, 'other')).pull(blob, pulls([]), wrong)).rejects.toMatchObject({
      code: 'input-missing',
    });
  });
});

describe('a large result', () => {
  /** A worker with one file; `say`: what it does with the bytes on the way by the connection. */
  async function transfer(how: {
    readonly link?: 'earlier build' | 'none' | 'cut' | 'wrong digest';
    readonly begun?: Buffer;
    readonly lists?: string;
  }) {
    const asked: WireAsk[] = [];
    const asking: Asking = new Asking((ask) => {
      asked.push(ask);
      const listed = { name: 'large', bytes: LARGE.length, executable: false };
      setImmediate(() => {
        if (ask.what === 'files') {
          const digest = ask.digests === true ? { sha256: how.lists ?? sha256(LARGE) } : {};
          asking.take({ t: 'answer', id: ask.id, ok: true, files: [{ ...listed, ...digest }] }, Buffer.alloc(0));
        } else if (ask.what === 'read')
          asking.take({ t: 'answer', id: ask.id, ok: true }, LARGE.subarray(ask.offset, ask.offset + ask.bytes));
      });
      return true;
    });
    const ranges: Wanted[] = [];
    const { path } = await listening((socket) => {
      if (how.link === 'wrong digest') {
        socket.once('data', () => void socket.write(Buffer.concat([LARGE, Buffer.from('0'.repeat(64))])));
        return;
      }
      void new StagingLink(socket).answer(async (one) => {
        ranges.push(one);
        return {
          read: async (memory, at) => {
            if (how.link === 'cut' && at > 4 * MB) throw new Error('the machine is gone');
            return LARGE.copy(memory, 0, at);
          },
          close: async () => undefined,
        };
      });
    });
    const into = join(dir, 'into');
    if (how.begun) {
      mkdirSync(into);
      writeFileSync(partOf(join(into, 'large')), how.begun);
    }
    const outcome = await bringHome({
      attempt: endedAttempt(KEY),
      request: { key: KEY, outputs: ['large'], stdout: false, stderr: false, into },
      worker: asking,
      wanted: () => true,
      connect:
        how.link === 'earlier build'
          ? undefined
          : async () => (how.link === 'none' ? undefined : new StagingLink(connect(path))),
    }).catch((thrown: unknown) => thrown);
    return { outcome, asked, ranges, file: () => readFileSync(join(into, 'large')) };
  }
  const reads = (asked: readonly WireAsk[]) => asked.flatMap((ask) => (ask.what === 'read' ? [ask.offset] : []));
  const lists = (asked: readonly WireAsk[]) => asked.flatMap((ask) => (ask.what === 'files' ? [ask.digests] : []));

  it('comes by it, and is read once: its digest comes behind it', async () => {
    const { outcome, asked, file } = await transfer({});
    expect(outcome).toMatchObject({ ok: true });
    expect([file().equals(LARGE), reads(asked), lists(asked)]).toEqual([true, [], ['small']]);
  });

  it('comes by the other connection if there is none, and its digest is asked for', async () => {
    const { outcome, asked, file } = await transfer({ link: 'none' });
    expect(outcome).toMatchObject({ ok: true });
    expect([file().equals(LARGE), lists(asked)]).toEqual([true, ['small', true]]);
  });

  it('of a worker of an earlier build comes as before', async () => {
    const { outcome, asked, file } = await transfer({ link: 'earlier build' });
    expect(outcome).toMatchObject({ ok: true });
    expect([file().equals(LARGE), lists(asked)]).toEqual([true, [true]]);
  });

  it('goes on by the other when it is cut', async () => {
    const { outcome, asked, file } = await transfer({ link: 'cut' });
    expect(outcome).toMatchObject({ ok: true });
    expect([file().equals(LARGE), lists(asked)]).toEqual([true, ['small', true]]);
    expect(Math.min(...reads(asked))).toBeGreaterThanOrEqual(4 * MB);
  });

  it('goes on where an earlier try stopped, and is then compared as a whole', async () => {
    const { outcome, asked, ranges, file } = await transfer({ begun: LARGE.subarray(0, 2 * MB) });
    expect(outcome).toMatchObject({ ok: true });
    expect([file().equals(LARGE), lists(asked), reads(asked)]).toEqual([true, ['small', true], []]);
    expect(ranges.map(({ from }) => from)).toEqual([2 * MB]);
  });

  it.each([
    ['its digest is another', { link: 'wrong digest' }],
    ['what an earlier try left is of another file', { begun: randomBytes(2 * MB) }],
    ['it came by the other connection and its digest is another', { link: 'none', lists: sha256(Buffer.from('x')) }],
  ] as const)('is refused if %s', async (_, how) => {
    expect((await transfer(how)).outcome).toMatchObject({ code: 'protocol-error' });
  });
});

it('writes what arrives in order, and tells of a write that failed', async () => {
  const path = join(dir, 'out');
  const file = await open(path, 'w');
  const arriving = new Arriving(file, 0);
  for (let at = 0; at < LARGE.length; at += 100_001) await arriving.add(LARGE.subarray(at, at + 100_001));
  await arriving.flush();
  await file.close();
  expect([readFileSync(path).equals(LARGE), arriving.digest()]).toEqual([true, sha256(LARGE)]);
  const closed = await open(path, 'r');
  const failing = new Arriving(closed, 0);
  const all = async () => {
    for (let i = 0; i < 4; i++) await failing.add(Buffer.alloc(MB));
    await failing.flush();
  };
  await expect(all()).rejects.toMatchObject({ code: 'EBADF' });
  await closed.close();
});

it('writes the rest of what was written in part', async () => {
  const path = join(dir, 'out');
  const file = await open(path, 'w');
  const lazy = {
    writev: async ([first, second]: readonly Buffer[], at: number) => {
      const some = Buffer.concat([first ?? LARGE, second?.subarray(0, 3) ?? LARGE]);
      await file.write(some, 0, some.length, at);
      return { bytesWritten: some.length };
    },
    write: (...given: [Buffer, number, number, number]) => file.write(...given),
    datasync: () => file.datasync(),
  };
  const arriving = new Arriving(lazy, 0);
  for (const at of [0, 1000, 5000]) await arriving.add(LARGE.subarray(at, at === 0 ? 1000 : at === 1000 ? 5000 : 9000));
  await arriving.flush();
  await file.close();
  expect(readFileSync(path).equals(LARGE.subarray(0, 9000))).toBe(true);
});

it('has one file under way at a time, and ends if that is left in the middle', async () => {
  const { links, asking } = await ground();
  const link = await links.open('w', asking, KEY, 'results');
  const by = link.ask({ what: 'result', path: 'work/large', from: 0, to: 10 });
  await by.next();
  const later = all(link.ask({ what: 'result', path: 'work/large', from: 10, to: 20 }));
  await by.return(undefined);
  // What was left of the first would be taken for the second.
  await expect(later).rejects.toThrow('cut');
});
