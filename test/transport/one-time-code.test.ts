import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openTransport } from '../../src/transport/open-transport.ts';
import type { Prompt, PromptRequest } from '../../src/transport/prompt.ts';
import { type AskingServer, startAskingServer } from '../sites/ssh-asking-server.ts';
import { makeKey, publicKeyOf } from '../sites/ssh-keys.ts';

describe.each([
  ['ssh2', false],
  ['ssh2', true],
  ['openssh', false],
  ['openssh', true],
] as const)('%s, a key first: %s', (transport, keyFirst) => {
  let dir: string;
  let server: AskingServer;
  let sshConfigFile: string;
  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'gotc-'));
    mkdirSync(join(dir, 'client'));
    const hostKey = makeKey(dir, 'host');
    server = await startAskingServer(hostKey, { keyFirst });
    const known = join(dir, 'known_hosts');
    writeFileSync(known, `[127.0.0.1]:${server.port} ${publicKeyOf(hostKey)}\n`);
    sshConfigFile = join(dir, 'config');
    const key = makeKey(dir, 'key');
    writeFileSync(
      sshConfigFile,
      `Host site\nHostName 127.0.0.1\nPort ${server.port}\nUserKnownHostsFile ${known}\nIdentityFile ${key}\nIdentitiesOnly yes\n`,
    );
  });
  afterAll(async () => {
    await server.stop();
    rmSync(dir, { recursive: true });
  });

  const open = (prompt?: Prompt) =>
    openTransport('site', { transport, sshConfigFile, ...(prompt === undefined ? {} : { prompt }) });

  test('without anybody to ask the site needs a log-in', async () => {
    const site = await open();
    await expect(site.run('true')).rejects.toMatchObject({ code: 'needs-login', retry: 'after-credential' });
    await site.close();
    const nobody = await open(async () => undefined);
    await expect(nobody.run('true')).rejects.toMatchObject({ code: 'needs-login', retry: 'after-credential' });
    await nobody.close();
  });

  test('the questions are put once, and the connection serves all from then on', async () => {
    const requests: PromptRequest[] = [];
    const site = await open(async (request) => {
      requests.push(request);
      return request.questions.map(({ text }) => (/code/i.test(text) ? `code-${server.asked()}` : 'secret'));
    });
    const answers = await Promise.all([1, 2, 3].map(async (n) => (await site.run(`echo ${n}`)).stdout.toString()));
    expect(answers).toEqual(['1\n', '2\n', '3\n']);
    expect(requests.flatMap(({ questions }) => questions).map(({ text }) => text.replace(/^\(.*\) /, ''))).toEqual([
      'Password: ',
      'Verification code: ',
    ]);
    expect(requests[0]?.kind).toBe('keyboard-interactive');
    const lost = new Promise((resolve) => void site.onLost(resolve));
    server.cut();
    await lost;
    expect((await site.run('echo again')).stdout.toString()).toBe('again\n');
    await site.close();
  });

  test('wrong answers are refused after some tries', async () => {
    const site = await open(async ({ questions }) => questions.map(() => 'wrong'));
    await expect(site.run('true')).rejects.toMatchObject({ code: 'login-refused' });
    await site.close();
  });
});

test.each(['ssh2', 'openssh'] as const)(
  "%s: a server's words are shown as its own, and harmless",
  async (transport) => {
    const dir = mkdtempSync(join(tmpdir(), 'gotc-'));
    mkdirSync(join(dir, 'client'));
    const hostKey = makeKey(dir, 'host');
    const asks = 'Enter passphrase for key /home/me/.ssh/id: \x1b]0;TITLE\x07\x1b[2J\x9b2J\nEnter PIN: ';
    const server = await startAskingServer(hostKey, { asks });
    const known = join(dir, 'known_hosts');
    writeFileSync(known, `[127.0.0.1]:${server.port} ${publicKeyOf(hostKey)}\n`);
    const sshConfigFile = join(dir, 'config');
    writeFileSync(
      sshConfigFile,
      `Host site\nHostName 127.0.0.1\nUser somebody\nPort ${server.port}\nUserKnownHostsFile ${known}\nIdentityFile none\n`,
    );
    const requests: PromptRequest[] = [];
    const site = await openTransport('site', {
      transport,
      sshConfigFile,
      prompt: async (request) => {
        requests.push(request);
        return request.questions.map(() => 'typed');
      },
    });
    await site.run('true').catch(() => undefined);
    const shown = requests.flatMap(({ instructions, questions }) => [
      ...instructions.split('\n').filter((line) => line !== ''),
      ...questions.map(({ text }) => text),
    ]);
    expect(shown.length).toBeGreaterThan(0);
    for (const line of shown) {
      expect(line).toMatch(/^\(somebody@/);
      expect(line).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/);
    }
    // What is typed for one server is not kept for another.
    expect(requests.map(({ kind }) => kind)).not.toContain('passphrase');
    await site.close();
    await server.stop();
    rmSync(dir, { recursive: true });
  },
);
