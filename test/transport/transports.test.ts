import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LocalTransport } from '../../src/transport/local.ts';
import { openTransport, type TransportOptions } from '../../src/transport/open-transport.ts';
import { type SshdOptions, startSshd } from '../sites/sshd.ts';
import { type Subject, testTransport } from './conformance.ts';

testTransport('local', async () => {
  const home = mkdtempSync(join(tmpdir(), 'gct-'));
  mkdirSync(join(home, 'files'));
  return {
    open: async () => {
      process.env['HOME'] = home;
      return new LocalTransport(home);
    },
    remoteDir: join(home, 'files'),
    tellsSignals: true,
    stop: async () => rmSync(home, { recursive: true }),
  };
});

const over =
  (transport: 'ssh2' | 'openssh', options: SshdOptions = {}) =>
  async (): Promise<Subject> => {
    const sshd = await startSshd(options);
    const how: TransportOptions = { transport, sshConfigFile: sshd.sshConfigFile };
    const remoteDir = join(sshd.home, 'files');
    mkdirSync(remoteDir);
    return {
      open: () => openTransport('site', how),
      remoteDir,
      tellsSignals: transport === 'ssh2',
      cut: () => sshd.killSessions(),
      down: () => sshd.kill(),
      up: () => sshd.restart(),
      stop: () => sshd.stop(),
    };
  };

testTransport('ssh2', over('ssh2'));
testTransport('ssh2 without sftp', over('ssh2', { sftp: false }));
testTransport('openssh', over('openssh'));
