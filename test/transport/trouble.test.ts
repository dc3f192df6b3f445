import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Transport } from '../../src/transport/contract.ts';
import { openTransport } from '../../src/transport/open-transport.ts';
import { type Sshd, startSshd } from '../sites/sshd.ts';

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'gtr-'));
});
afterAll(() => rmSync(dir, { recursive: true }));

/** A file system of 2 MiB, which only root can create. */
function smallDisk(path: string): boolean {
  mkdirSync(path);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'none', path], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

describe.each(['local', 'ssh2', 'ssh2 without sftp', 'openssh'] as const)('%s', (way) => {
  let sshd: Sshd | undefined;
  let transport: Transport;
  beforeAll(async () => {
    if (way === 'local') {
      transport = await openTransport('local');
      return;
    }
    sshd = await startSshd({ sftp: way !== 'ssh2 without sftp' });
    transport = await openTransport('site', {
      transport: way === 'openssh' ? 'openssh' : 'ssh2',
      sshConfigFile: sshd.sshConfigFile,
    });
  });
  afterAll(async () => {
    await transport.close();
    await sshd?.stop();
  });

  test('a full disk at either end is reported as such, and no part of the file stays', async ({ skip }) => {
    const full = join(dir, `full-${way}`);
    if (!smallDisk(full)) return skip('only root can make a small disk');
    try {
      writeFileSync(join(dir, 'big'), randomBytes(8 * 1024 * 1024));
      await expect(transport.put(join(dir, 'big'), join(full, 'big'))).rejects.toMatchObject({ code: 'disk-full' });
      await expect(transport.get(join(dir, 'big'), join(full, 'big'))).rejects.toMatchObject({ code: 'disk-full' });
      expect(readdirSync(full)).toEqual([]);
    } finally {
      execFileSync('umount', [full]);
    }
  });

  test('a file that grows while it is sent is not sent as if it were whole', async () => {
    const growing = join(dir, `growing-${way}`);
    writeFileSync(growing, randomBytes(4 * 1024 * 1024));
    let once = (): void => {
      once = () => undefined;
      writeFileSync(growing, 'more', { flag: 'a' });
    };
    const sent = transport.put(growing, `${growing}.sent`, { onProgress: () => once() });
    await expect(sent).rejects.toMatchObject({ code: 'protocol-error', retry: 'later' });
    expect(readdirSync(dir).filter((file) => file.includes('.sent') || file.endsWith('.part'))).toEqual([]);
  });
});

test.each(['ssh2', 'openssh'] as const)(
  '%s: connections that the server drops at its door are tried again',
  async (transport) => {
    const sshd = await startSshd({ maxStartups: '1' });
    const opened = await Promise.all(
      Array.from({ length: 3 }, () => openTransport('site', { transport, sshConfigFile: sshd.sshConfigFile })),
    );
    try {
      const codes = await Promise.all(opened.map(async (site) => (await site.run('true')).code));
      expect(codes).toEqual([0, 0, 0]);
      expect(sshd.log()).toMatch(/drop connection|MaxStartups throttling/);
    } finally {
      await Promise.all(opened.map((site) => site.close()));
      await sshd.stop();
    }
  },
);
