import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { GryphusError } from '../../src/errors.ts';
import type { Transport } from '../../src/transport/contract.ts';
import { shellQuote } from '../../src/util/shell-quote.ts';

/** What the suite needs of one way to reach a machine whose files this process also sees. */
export interface Subject {
  /** A new transport to the same machine; the suite closes it. */
  open(): Promise<Transport>;
  /** Where files may be put at the other end. */
  readonly remoteDir: string;
  /** Whether the transport reports that a signal ended a command; otherwise the exit status is 128 + signal. */
  readonly tellsSignals: boolean;
  /** Ends every connection at once, if there is one. */
  readonly cut?: () => void;
  /** The machine goes away and comes back. */
  readonly down?: () => void;
  readonly up?: () => Promise<void>;
  stop(): Promise<void>;
}

/** File names that are legal, and trouble for anything that builds command lines. */
export const NAMES = [
  'plain',
  'with space',
  "it's",
  'two\nlines',
  '$(touch pwned)`id`',
  '-rf',
  '"double"',
  'back\\slash\\',
  'ünï→cødé 🦅',
  '!history!',
  '*?[a-z]',
  '~',
  '#hash',
  '%s%n',
  ' lead and trail ',
  'tab\there',
  'x'.repeat(255),
];

/** Tests that every transport should be able to pass. */
export function testTransport(name: string, make: () => Promise<Subject>): void {
  describe(`transport ${name}`, () => {
    let subject: Subject;
    let transport: Transport;
    let local: string;
    beforeAll(async () => {
      subject = await make();
      transport = await subject.open();
      local = mkdtempSync(join(tmpdir(), 'gct-'));
    });
    afterAll(async () => {
      await transport.close();
      await subject.stop();
      rmSync(local, { recursive: true, force: true });
    });
    afterEach(() => {
      expect(readdirSync(subject.remoteDir).filter((file) => file.includes('pwned'))).toEqual([]);
    });
    const there = (file: string): string => join(subject.remoteDir, file);
    const here = (file: string): string => join(local, file);
    const sh = async (command: string, stdin?: string | Uint8Array): Promise<string> => {
      const result = await transport.run(command, stdin === undefined ? {} : { stdin });
      expect({ code: result.code, stderr: result.stderr.toString() }).toEqual({ code: 0, stderr: '' });
      return result.stdout.toString();
    };

    test.each(['socket', 'port'] as const)('listens at the far side on a %s, and passes both ways', async (kind) => {
      const path = join(subject.remoteDir, "way's $(here)");
      if (kind === 'socket') writeFileSync(path, 'left from before');
      const listening = await transport.listen(kind === 'socket' ? { kind, path } : { kind }, (stream) => {
        stream.on('error', () => undefined);
        stream.pipe(stream);
      });
      const { place } = listening;
      const socket = place.kind === 'socket' ? connect(place.path) : connect(place.port, '127.0.0.1');
      const sent = randomBytes(300_000);
      socket.end(sent);
      const chunks: Buffer[] = [];
      for await (const chunk of socket) chunks.push(chunk as Buffer);
      expect(Buffer.concat(chunks).equals(sent)).toBe(true);
      listening.close();
    });

    test('a command has its status, its output and its home directory', async () => {
      const result = await transport.run('echo out; echo err >&2; exit 3');
      expect(result).toMatchObject({ code: 3, signal: undefined });
      expect(result.stdout.toString()).toBe('out\n');
      expect(result.stderr.toString()).toBe('err\n');
      expect((await transport.run('exit 255')).code).toBe(255);
      expect(await sh('[ "$(pwd -P)" = "$(cd "$HOME" && pwd -P)" ] && echo home')).toBe('home\n');
    });

    test('a command is POSIX shell, whatever it is made of', async () => {
      const script =
        "a='x y'; for i in 1 2; do echo \"$a $i !! \\\\ \\$\"; done\ncat <<'E'\nhere 'doc' \"é\" \\n `x`\nE\n# end";
      expect(await sh(script)).toBe('x y 1 !! \\ $\nx y 2 !! \\ $\nhere \'doc\' "é" \\n `x`\n');
      for (const word of NAMES) expect(await sh(`printf %s ${shellQuote(word)}`)).toBe(word);
      expect(await sh(`: ${'x'.repeat(60_000)}; echo long`)).toBe('long\n');
    });

    test('a signal that ends a command is reported', async () => {
      const { code, signal } = await transport.run('kill -9 $$');
      expect({ code, signal }).toEqual(
        subject.tellsSignals ? { code: undefined, signal: 'KILL' } : { code: 137, signal: undefined },
      );
    });

    test('bytes go in and come out as they are', async () => {
      const bytes = randomBytes(8 * 1024 * 1024);
      const result = await transport.run('cat; cat >&2', { stdin: bytes });
      expect(result.stdout.equals(bytes)).toBe(true);
      expect((await transport.run('true', { stdin: bytes })).code).toBe(0);
      expect((await transport.run('cat')).stdout.length).toBe(0);
    });

    test('fifty commands at once each get their own answer', async () => {
      const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => sh(`sleep 0.0${n % 10}; echo ${n}`)));
      expect(answers).toEqual(Array.from({ length: 50 }, (_, n) => `${n}\n`));
    });

    test('a long-lived command is talked with', async () => {
      const channel = await transport.open('while read -r line; do echo "got $line"; done; exit 7');
      channel.stderr.resume();
      const lines = channel.stdout.setEncoding('utf8')[Symbol.asyncIterator]();
      channel.stdin.write('one\n');
      expect((await lines.next()).value).toBe('got one\n');
      channel.stdin.write('two\n');
      expect((await lines.next()).value).toBe('got two\n');
      channel.stdin.end();
      expect((await lines.next()).done).toBe(true);
      expect(await channel.closed).toEqual({ kind: 'exited', code: 7 });
    });

    test('a command that takes too long is given up, and ends at the far side', async () => {
      const mark = there('alive');
      const command = `echo $$ > ${shellQuote(mark)}; sleep 60; echo no`;
      await expect(transport.run(command, { timeoutMs: 700 })).rejects.toMatchObject({
        code: 'timeout',
        retry: 'later',
      });
      await gone(Number(readFileSync(mark, 'utf8')));
      const abort = new AbortController();
      setTimeout(() => abort.abort(), 300);
      await expect(transport.run(command, { signal: abort.signal })).rejects.toMatchObject({ code: 'interrupted' });
      await gone(Number(readFileSync(mark, 'utf8')));
      await expect(transport.run('true', { signal: abort.signal })).rejects.toMatchObject({ code: 'interrupted' });
    });

    test('files of any name go there and back whole, with their mode', async () => {
      mkdirSync(there('names'));
      await Promise.all(
        NAMES.map(async (file, index) => {
          const bytes = randomBytes(index * 1000);
          writeFileSync(here(file), bytes);
          await transport.put(here(file), there(`names/${file}`), { mode: 0o750 });
          expect(readFileSync(there(`names/${file}`)).equals(bytes)).toBe(true);
          expect(statSync(there(`names/${file}`)).mode & 0o777).toBe(0o750);
          await transport.get(there(`names/${file}`), here(`${index}.back`));
          expect(readFileSync(here(`${index}.back`)).equals(bytes)).toBe(true);
        }),
      );
      expect(readdirSync(there('names')).sort()).toEqual([...NAMES].sort());
    });

    test('a large file goes both ways, over an older one', async () => {
      const bytes = randomBytes(40 * 1024 * 1024 + 17);
      writeFileSync(here('large'), bytes);
      writeFileSync(there('large'), 'older');
      const steps: number[] = [];
      await transport.put(here('large'), there('large'), { onProgress: (done) => steps.push(done) });
      expect(readFileSync(there('large')).equals(bytes)).toBe(true);
      expect(statSync(there('large')).mode & 0o777).toBe(0o600);
      expect(steps.at(-1)).toBe(bytes.length);
      await transport.get(there('large'), here('large.back'));
      expect(readFileSync(here('large.back')).equals(bytes)).toBe(true);
    });

    test('several that put under one name at once leave one whole file', async () => {
      const all = Array.from({ length: 4 }, () => randomBytes(3 * 1024 * 1024));
      all.forEach((bytes, n) => writeFileSync(here(`same-${n}`), bytes));
      const twice = [...all.keys(), ...all.keys()];
      await Promise.all(twice.map((n) => transport.put(here(`same-${n}`), there('same'))));
      expect(all.some((bytes) => bytes.equals(readFileSync(there('same'))))).toBe(true);
      expect(readdirSync(subject.remoteDir).filter((file) => file.endsWith('.part'))).toEqual([]);
    });

    test('what cannot be copied is said, and leaves nothing', async () => {
      const before = readdirSync(subject.remoteDir).sort();
      await expect(transport.put(here('absent'), there('x'))).rejects.toMatchObject({ code: 'input-missing' });
      await expect(transport.get(there('absent'), here('x'))).rejects.toMatchObject({ code: 'output-missing' });
      writeFileSync(here('small'), 'small');
      const lost = transport.put(here('small'), there('no/such/dir/x'));
      await expect(lost).rejects.toBeInstanceOf(GryphusError);
      await expect(lost).rejects.toThrow(/no\/such\/dir/);
      mkdirSync(there('dir'), { recursive: true });
      await expect(transport.put(here('small'), there('dir'))).rejects.toBeInstanceOf(GryphusError);
      await expect(transport.get(there('dir'), here('x'))).rejects.toBeInstanceOf(GryphusError);
      rmSync(there('dir'), { recursive: true });
      expect(readdirSync(subject.remoteDir).sort()).toEqual(before);
    });

    test('an interrupted transfer continues where it stopped', async () => {
      const bytes = randomBytes(30 * 1024 * 1024);
      writeFileSync(here('cut'), bytes);
      for (const direction of ['put', 'get'] as const) {
        const [from, to] = direction === 'put' ? [here('cut'), there('cut')] : [there('cut'), here('cut.back')];
        const abort = new AbortController();
        const stop = { signal: abort.signal, onProgress: (done: number) => done > 12_000_000 && abort.abort() };
        await expect(transport[direction](from, to, stop)).rejects.toMatchObject({ code: 'interrupted' });
        const starts: number[] = [];
        await transport[direction](from, to, { onProgress: (done) => starts.push(done) });
        expect(starts[0]).toBeGreaterThan(4_000_000);
        expect(readFileSync(to).equals(bytes)).toBe(true);
      }
      // A part with different bytes is not continued.
      const abort = new AbortController();
      const stop = { signal: abort.signal, onProgress: (done: number) => done > 12_000_000 && abort.abort() };
      await expect(transport.put(here('cut'), there('other'), stop)).rejects.toMatchObject({ code: 'interrupted' });
      const part = readdirSync(subject.remoteDir).find((file) => file.endsWith('.part')) ?? '';
      await quiet(there(part));
      writeFileSync(there(part), randomBytes(statSync(there(part)).size));
      const starts: number[] = [];
      await transport.put(here('cut'), there('other'), { onProgress: (done) => starts.push(done) });
      expect(starts[0]).toBe(0);
      expect(readFileSync(there('other')).equals(bytes)).toBe(true);
    });

    test('a lost connection is reported, and the next use makes another', async ({ skip }) => {
      const { cut } = subject;
      if (cut === undefined) return skip('no connection to lose');
      await sh('true');
      const reasons: Error[] = [];
      const forget = transport.onLost((reason) => reasons.push(reason));
      const running = transport.run('echo started; sleep 60');
      const channel = await transport.open('cat');
      channel.stdout.resume();
      channel.stderr.resume();
      cut();
      await expect(running).rejects.toMatchObject({ code: 'site-unreachable', retry: 'later' });
      expect((await channel.closed).kind).toBe('lost');
      await expect.poll(() => reasons.length).toBe(1);
      expect(await sh('echo again')).toBe('again\n');
      forget();
      cut();
      await expect.poll(() => sh('echo again').catch(() => '')).toBe('again\n');
      expect(reasons.length).toBe(1);
    });

    test('a connection that is cut in the middle of a transfer costs only the rest of it', async ({ skip }) => {
      const { cut } = subject;
      if (cut === undefined) return skip('no connection to lose');
      const bytes = randomBytes(60 * 1024 * 1024);
      writeFileSync(here('lost'), bytes);
      for (const direction of ['put', 'get'] as const) {
        const [from, to] = direction === 'put' ? [here('lost'), there('lost')] : [there('lost'), here('lost.back')];
        let once = (): void => {
          once = () => undefined;
          cut();
        };
        const broken = transport[direction](from, to, { onProgress: (done) => done > 40_000_000 && once() });
        await expect(broken).rejects.toMatchObject({ retry: 'later' });
        const starts: number[] = [];
        await transport[direction](from, to, { onProgress: (done) => starts.push(done) });
        expect(starts[0]).toBeGreaterThan(1_000_000);
        expect(readFileSync(to).equals(bytes)).toBe(true);
      }
    });

    test('a machine that is down is unreachable for now, and then is back', async ({ skip }) => {
      const { down, up } = subject;
      if (down === undefined || up === undefined) return skip('it is never down');
      down();
      await expect.poll(() => transport.run('true').then(() => '', codeOf)).toBe('site-unreachable');
      await expect(transport.put(here('small'), there('small'))).rejects.toMatchObject({ retry: 'later' });
      await up();
      expect(await sh('echo back')).toBe('back\n');
    });

    test('a closed transport lets go of everything', async () => {
      const other = await subject.open();
      expect((await other.run('echo one')).stdout.toString()).toBe('one\n');
      await other.close();
      const late = await other.run('true').then(() => 'ran', codeOf);
      expect(late).toBe(subject.cut === undefined ? 'ran' : 'site-unreachable');
    });
  });
}

const codeOf = (thrown: unknown): string => (thrown as GryphusError).code;

/** Waits until a file is no longer written: what was under way when a transfer was cancelled still arrives. */
async function quiet(file: string): Promise<void> {
  let before = -1;
  const settled = (): boolean => {
    const { size } = statSync(file);
    const same = size > 1_000_000 && size === before;
    before = size;
    return same;
  };
  await expect.poll(settled, { interval: 300, timeout: 10_000 }).toBe(true);
}

/** Waits until a process has ended. */
async function gone(pid: number): Promise<void> {
  expect(pid).toBeGreaterThan(1);
  await expect
    .poll(
      () => {
        try {
          process.kill(pid, 0);
          return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
        } catch {
          return false;
        }
      },
      { timeout: 5000 },
    )
    .toBe(false);
}
