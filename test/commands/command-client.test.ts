import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { tmpdir } from 'node:os';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { frame, lengthOf, parseRequest, type Request } from '../../src/command-server/protocol.ts';
import { CLI } from '../agent/agent.ts';

const CLIENT = join(dirname(CLI), `../native/${process.arch}/gryphus-client`);
const LOST =
  'gryphus: the command server ended before the command had been answered; whether it was done is not known.\n';

let dir: string;
let server: Server | undefined;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'gryphus-client-'));
  mkdirSync(join(dir, 'state/run'), { recursive: true });
  // In the place of Node and its program: prints its words.
  writeFileSync(join(dir, 'own'), '#!/bin/sh\nprintf "[%s]" "$@"\nexit 3\n');
  chmodSync(join(dir, 'own'), 0o755);
});
afterEach(() => {
  server?.close();
  server = undefined;
  rmSync(dir, { recursive: true });
});

/** Listens where the client of this directory looks. */
function serving(answer: (socket: Socket, request: Request | undefined) => void): Promise<void> {
  server?.close();
  rmSync(join(dir, 'state/run/commands'), { force: true });
  server = createServer((socket) => {
    let bytes: Buffer = Buffer.alloc(0);
    socket.on('error', () => undefined);
    socket.on('data', (some) => {
      bytes = Buffer.concat([bytes, some]);
      if (bytes.length === lengthOf(bytes)) answer(socket, parseRequest(bytes));
    });
  });
  return new Promise((listening) => void server?.listen(join(dir, 'state/run/commands'), listening));
}

interface Said {
  readonly status: number | null;
  readonly out: string;
  readonly err: string;
}

function run(program: string, words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Said> {
  const child = spawn(program, words, {
    cwd: dir,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: '/usr/bin:/bin', GRYPHUS_HOME: dir, ...env },
  });
  const said = { out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (said.out += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said.err += text));
  return new Promise((ended) => child.once('close', (status) => ended({ status, ...said })));
}

const asked = (...words: string[]) => run(CLIENT, [join(dir, 'own'), 'script', ...words]);

const WORDS = ['a b', '', '$(touch x)', "it's", '"', 'new\nline', 'Ünïcödé 🦅', '--', '-x=1'];
const HERE = { status: 3, out: `[script]${WORDS.map((word) => `[${word}]`).join('')}`, err: '' };

describe('the client of the command server', () => {
  it('runs the command itself where no server is', async () => {
    expect(await asked(...WORDS)).toEqual(HERE);
    writeFileSync(join(dir, 'state/run/commands'), 'no socket');
    expect(await asked(...WORDS)).toEqual(HERE);
  });
  it.each<[string, (socket: Socket) => void]>([
    ['is told to', (socket) => socket.end(frame('elsewhere'))],
    [
      'is told to after the command was taken',
      (socket) => socket.end(Buffer.concat([frame('taken'), frame('elsewhere')])),
    ],
    ['hears nothing', (socket) => socket.end()],
    ['hears half of a frame', (socket) => socket.end(frame('taken').subarray(0, 3))],
  ])('runs it itself where it %s', async (_, answer) => {
    await serving(answer);
    expect(await asked(...WORDS)).toEqual(HERE);
  });
  it('says that it does not know whether a command was done that had been taken', async () => {
    await serving((socket) => socket.end(Buffer.concat([frame('taken'), frame('stdout', Buffer.from('half'))])));
    expect(await asked('x')).toEqual({ status: 70, out: 'half', err: LOST });
    await serving((socket) =>
      socket.end(Buffer.concat([frame('taken'), frame('stdout', Buffer.from('half')).subarray(0, 7)])),
    );
    expect(await asked('x')).toEqual({ status: 70, out: '', err: LOST });
  });
  it('sends the place of the command as it is', async () => {
    let got: Request | undefined;
    await serving((socket, request) => {
      got = request;
      socket.end(frame('status', 7));
    });
    const script = 'umask 027; cd "$1" && shift && exec "$@"';
    const place = join(dir, 'a place\nfor it');
    mkdirSync(place);
    const said = await run('sh', ['-c', script, 'sh', place, CLIENT, '/bin/false', 'script', ...WORDS], {
      LONG: 'x=\ny',
    });
    expect(said).toEqual({ status: 7, out: '', err: '' });
    expect(got).toMatchObject({ umask: 0o27, stdout: false, stderr: false, columns: 0, cwd: place, script: 'script' });
    expect(got?.words).toEqual(WORDS);
    expect(got?.env).toMatchObject({ LONG: 'x=\ny', GRYPHUS_HOME: dir });
  });
  it('shows each output where it belongs, whatever its size', async () => {
    const big = Buffer.alloc(5_000_000, 'line of text\n');
    await serving((socket) => {
      for (const one of [frame('taken'), frame('stderr', Buffer.from('warned\n')), frame('stdout', big)])
        socket.write(one);
      socket.end(Buffer.concat([frame('stdout', Buffer.from('end')), frame('status', 0)]));
    });
    const { status, out, err } = await asked('x');
    expect([status, err, out.length, out.endsWith('end')]).toEqual([0, 'warned\n', big.length + 3, true]);
    expect(await run('bash', ['-o', 'pipefail', '-c', `${CLIENT} own script x | head -n 1`])).toEqual({
      status: 0,
      out: 'line of text\n',
      err: 'warned\n',
    });
    expect((await run('sh', ['-c', `${CLIENT} own script x >/dev/full`])).status).toBe(74);
  });
  it('runs itself what no server can understand: other bytes than UTF-8, a megabyte of words', async () => {
    await serving((socket, request) => socket.end(request === undefined ? frame('elsewhere') : frame('status', 0)));
    const odd = `${CLIENT} ./own script "$(printf 'x\\377')"`;
    expect((await run('sh', ['-c', odd])).status).toBe(3);
    expect((await asked(...Array.from({ length: 10 }, () => 'x'.repeat(120_000)))).status).toBe(3);
    expect((await asked('x')).status).toBe(0);
  });
  it('is a program of a few kilobytes that needs no library', () => {
    expect(execFileSync('file', ['-b', CLIENT], { encoding: 'utf8' })).toMatch(/statically linked/);
    expect(execFileSync('stat', ['-c', '%s', CLIENT], { encoding: 'utf8' }).length).toBeLessThan(6);
  });
});

describe('a request', () => {
  it('of any bytes is a request or none', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.boolean(), (bytes, isFramed) => {
        const all = isFramed ? Buffer.concat([Buffer.from([bytes.length, 0, 0, 0]), bytes]) : Buffer.from(bytes);
        lengthOf(all);
        parseRequest(all);
      }),
    );
  });
  it('keeps every text', () => {
    const text = fc.string({ unit: 'grapheme' }).filter((one) => !one.includes('\0'));
    const name = text.filter((one) => one !== '' && !one.includes('=') && one !== '__proto__');
    fc.assert(
      fc.property(fc.array(text), fc.dictionary(name, text), (words, env) => {
        const fields = ['1', '22', '1', '0', '80', '/home', String(words.length + 1), 'script', ...words];
        for (const [key, value] of Object.entries(env)) fields.push(`${key}=${value}`);
        const body = Buffer.from(`${fields.join('\0')}\0`);
        const length = Buffer.alloc(4);
        length.writeUInt32LE(body.length);
        const request = parseRequest(Buffer.concat([length, body]));
        expect(request).toEqual({
          umask: 0o22,
          stdout: true,
          stderr: false,
          columns: 80,
          cwd: '/home',
          script: 'script',
          words,
          env: { ...env },
        });
      }),
    );
  });
});
