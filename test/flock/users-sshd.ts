import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { accountOf } from '../../src/pool/host/accounts.ts';
import { until } from '../agent/agent.ts';
import { makeKey, publicKeyOf } from '../sites/ssh-keys.ts';
import type { UsersPool } from './users-pool.ts';

const PORT = 2222;

/** An sshd of a pool's user, through which `guest` reaches ports of that machine, as `Host name` of its ssh. */
export async function startUsersSshd(
  pool: UsersPool,
  guest: UsersPool,
  name: string,
  address: string,
): Promise<ChildProcess> {
  const ssh = join(accountOf(guest.user)?.home ?? '', '.ssh');
  mkdirSync(ssh, { mode: 0o700 });
  const key = guest.own(makeKey(guest.own(ssh), 'id_ed25519'));
  const hostKey = pool.own(makeKey(pool.work, 'host_ed25519'));
  const guests = pool.file('authorized_keys', readFileSync(`${key}.pub`, 'utf8'));
  const write = (file: string, text: string) => {
    writeFileSync(join(ssh, file), text);
    guest.own(join(ssh, file));
  };
  write('known_hosts', `[${address}]:${PORT} ${publicKeyOf(hostKey)}\n`);
  write('config', `Host ${name}\n  HostName ${address}\n  Port ${PORT}\n  User ${pool.user}\n`);
  const lines = [
    `ListenAddress ${address}:${PORT}`,
    `HostKey ${hostKey}`,
    'PidFile none',
    `AuthorizedKeysFile ${guests}`,
    'PasswordAuthentication no',
    'UsePAM no',
    'PermitTTY no',
    'ForceCommand /bin/false',
  ];
  const config = pool.file('sshd_config', `${lines.join('\n')}\n`);
  const log = pool.file('sshd.log', '');
  const [program = '', ...words] = pool.words('/usr/sbin/sshd', '-D', '-f', config, '-E', log);
  const server = spawn(program, words, { stdio: 'ignore' });
  await until('sshd to listen', () => {
    const said = readFileSync(log, 'utf8');
    if (server.exitCode !== null) throw new Error(`sshd has ended: ${said}`);
    return said.includes('listening') || undefined;
  });
  return server;
}
