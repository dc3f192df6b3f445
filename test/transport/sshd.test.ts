import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Sshd, startSshd } from '../sites/sshd.ts';

let sshd: Sshd;
beforeAll(async () => {
  sshd = await startSshd({ env: { GREETING: "it's $HOME" } });
});
afterAll(async () => {
  await sshd.stop();
});

const ssh = (command: string): string =>
  execFileSync('ssh', ['-F', sshd.sshConfigFile, '-o', 'BatchMode=yes', 'site', command], { encoding: 'utf8' });

test('a private sshd lets its key in, with a scratch home and the environment asked for', () => {
  expect(ssh('pwd; printf "%s|" "$HOME" "$GREETING"')).toBe(`${sshd.home}\n${sshd.home}|it's $HOME|`);
});

test('it is back on its port after its death', async () => {
  sshd.kill();
  expect(() => ssh('true')).toThrow(/refused/);
  await sshd.restart();
  expect(ssh('echo back')).toBe('back\n');
  await sshd.restart({ newHostKey: true });
  expect(() => ssh('true')).toThrow(/HAS CHANGED/);
});
