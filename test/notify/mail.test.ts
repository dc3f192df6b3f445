import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { GryphusError } from '../../src/errors.ts';
import { sendMail, type SmtpServer } from '../../src/notify/mail.ts';
import { jobEnded, type Message, testMessage } from '../../src/notify/messages.ts';
import { type SmtpSink, startSmtp } from '../sites/smtp.ts';

const SECRET = 'pl4nted-Secret ü';
const dir = mkdtempSync(join(tmpdir(), 'mail-'));
const passwordFile = join(dir, 'it is $(secret)');
let sink: SmtpSink | undefined;

beforeAll(() => writeFileSync(passwordFile, `${SECRET}\nnot this line\n`, { mode: 0o600 }));
afterAll(() => rmSync(dir, { recursive: true }));
afterEach(async () => {
  await sink?.stop();
  sink = undefined;
});

const message = testMessage('home.example.org', 1_795_217_644);
const route = (port: number, more: Partial<SmtpServer> = {}): SmtpServer => ({
  method: 'smtp',
  host: 'localhost',
  port,
  security: 'none',
  timeoutMs: 2000,
  ...more,
});
const send = (to: SmtpServer, what: Message = message) => sendMail(to, 'me@example.org', ['you@example.org'], what);

async function failure(promise: Promise<unknown>): Promise<GryphusError> {
  const thrown = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(thrown instanceof GryphusError)) throw new Error(`expected a GryphusError, got ${String(thrown)}`);
  const all = `${thrown.message} ${thrown.suggestions.join(' ')} ${String(thrown.cause)} ${thrown.stack}`;
  expect(all).not.toContain(SECRET);
  expect(all).not.toContain(Buffer.from(SECRET).toString('base64'));
  return thrown;
}

describe('mail by SMTP', () => {
  it('delivers a message in plain text', async () => {
    sink = await startSmtp();
    await send(route(sink.port));
    expect(sink.mails).toHaveLength(1);
    expect(sink.mails[0]).toMatchObject({ from: 'me@example.org', to: ['you@example.org'], user: undefined });
    expect(sink.mails[0]?.raw).toContain('Subject: [Gryphus] Test alarm from home.example.org');
    expect(sink.mails[0]?.raw).toContain('text/plain');
  });

  it('logs in over STARTTLS, with the password from a file', async () => {
    sink = await startSmtp({ login: { user: 'jane', password: SECRET } });
    await send(route(sink.port, { security: 'starttls', ca: sink.ca, user: 'jane', password: { file: passwordFile } }));
    expect(sink.mails[0]).toMatchObject({ tls: true, user: 'jane' });
  });

  it('logs in over TLS, with the password from a command', async () => {
    sink = await startSmtp({ secure: true, login: { user: 'jane', password: SECRET } });
    const password = { command: `head -n 1 '${passwordFile}'` };
    await send(route(sink.port, { security: 'tls', ca: sink.ca, user: 'jane', password }));
    expect(sink.mails[0]).toMatchObject({ tls: true, user: 'jane' });
  });

  it('never falls back from STARTTLS to clear text', async () => {
    sink = await startSmtp({ disabledCommands: ['STARTTLS'] });
    expect((await failure(send(route(sink.port, { security: 'starttls', ca: sink.ca })))).code).toBe('bad-config');
    expect(sink.mails).toHaveLength(0);
  });

  it('does not trust a certificate of an unknown authority', async () => {
    sink = await startSmtp({ secure: true });
    await failure(send(route(sink.port, { security: 'tls' })));
    expect(sink.mails).toHaveLength(0);
  });

  it('says that the password is wrong, not what it is, even when the server repeats it', async () => {
    sink = await startSmtp({ login: { user: 'jane', password: 'another' } });
    const to = route(sink.port, { security: 'starttls', ca: sink.ca, user: 'jane', password: { file: passwordFile } });
    const error = await failure(send(to));
    expect(error.code).toBe('login-refused');
    expect(error.message).toContain('***');
    expect(error.suggestions.join()).toContain(passwordFile);
  });

  it('does not send a password in clear over a network', async () => {
    const to = route(25, { host: 'mail.example.org', user: 'jane', password: { file: passwordFile } });
    expect((await failure(send(to))).message).toContain('unencrypted');
  });

  it('refuses a password file that others can read, and says what to type', async () => {
    const open = join(dir, 'open');
    writeFileSync(open, SECRET, { mode: 0o644 });
    chmodSync(open, 0o644);
    const error = await failure(send(route(25, { user: 'jane', password: { file: open } })));
    expect(error.code).toBe('not-permitted');
    expect(error.suggestions).toEqual([`Run: chmod 600 ${open}`]);
  });

  it.each([
    [{ command: `echo '${SECRET}'; exit 3` }, 'exited with status 3'],
    [{ file: join(dir, 'nowhere') }, 'There is no password file'],
  ])('says which password source failed: %#', async (password, text) => {
    expect((await failure(send(route(25, { user: 'jane', password })))).message).toContain(text);
  });

  it('tells a refusal for ever from one for now', async () => {
    let code = 550;
    sink = await startSmtp({
      onRcptTo(_address, _session, done) {
        done(Object.assign(new Error('no such mailbox'), { responseCode: code }));
      },
    });
    expect(await failure(send(route(sink.port)))).toMatchObject({ code: 'site-refused', retry: 'never' });
    code = 451;
    expect(await failure(send(route(sink.port)))).toMatchObject({ retry: 'later' });
  });

  it('can be tried later when the server is down, silent, or talks nonsense', async () => {
    const dumb = createServer((socket) => socket.on('error', () => undefined));
    const babbler = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.end('HTTP/1.1 400 Bad Request\r\n\r\n');
    });
    for (const server of [dumb, babbler]) {
      await new Promise<void>((resolve) => {
        server.listen(0, '127.0.0.1', resolve);
      });
      const { port } = server.address() as { port: number };
      expect((await failure(send(route(port, { timeoutMs: 300 })))).retry).toBe('later');
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
      expect((await failure(send(route(port)))).code).toBe('site-unreachable');
    }
  });

  it('keeps a job name with line ends out of the headers', async () => {
    sink = await startSmtp();
    const job = {
      id: { cluster: 3, proc: 0 },
      attempt: 1,
      command: 'x\r\nBcc: evil@example.org\r\n\r\nbody $(rm -rf /) ü',
      site: 'a\nb',
      how: { kind: 'exited', code: 0 },
      submittedAt: 1,
      startedAt: 2,
      endedAt: 5,
    } as const;
    await send(route(sink.port), { ...jobEnded(job), subject: 'x\r\nBcc: evil@example.org' });
    expect(sink.mails[0]?.to).toEqual(['you@example.org']);
    expect(sink.mails[0]?.raw.split('\r\n\r\n')[0]).not.toMatch(/^Bcc/m);
  });

  it.each(['-oQ/tmp', 'a b@example.org', 'a@example.org\nb', '<a@example.org>', ''])(
    'refuses the address %j',
    async (bad) => {
      const error = await failure(sendMail(route(25), 'me@example.org', [bad], message));
      expect(error.code).toBe('bad-config');
    },
  );
});

describe('mail by sendmail', () => {
  it('gives the message on standard input and the addresses as words', async () => {
    const program = join(dir, 'send mail');
    const out = join(dir, 'out');
    writeFileSync(program, `#!/bin/sh\nprintf '%s\\n' "$@" >'${out}'; cat >>'${out}'\n`, { mode: 0o755 });
    await sendMail({ method: 'sendmail', path: program }, 'me@example.org', ["o'hara@example.org", 'root'], message);
    const got = readFileSync(out, 'utf8');
    expect(got.split('\n').slice(0, 5)).toEqual(['-i', '-f', 'me@example.org', "o'hara@example.org", 'root']);
    expect(got).toContain('Subject: [Gryphus] Test alarm');
  });

  it('names the program that is not there or fails', async () => {
    const fails = join(dir, 'fails');
    writeFileSync(fails, '#!/bin/sh\ncat >/dev/null; exit 75\n', { mode: 0o755 });
    for (const path of [join(dir, 'none'), fails]) {
      const error = await failure(
        sendMail({ method: 'sendmail', path }, 'me@example.org', ['you@example.org'], message),
      );
      expect(error.code).toBe('missing-program');
      expect(error.message).toContain(path);
    }
  });
});
