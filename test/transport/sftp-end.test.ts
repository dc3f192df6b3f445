import { EventEmitter } from 'node:events';
import type { SFTPWrapper } from 'ssh2';
import { expect, it } from 'vitest';
import type { RemoteShell } from '../../src/transport/remote-shell.ts';
import type { ShellFiles } from '../../src/transport/shell-files.ts';
import { SftpFiles } from '../../src/transport/ssh2-sftp.ts';

it('a request that a closing session drops, or that comes later, fails as the connection does', async () => {
  // ssh2 sends nothing once the channel is closing, and never calls back.
  const sftp = Object.assign(new EventEmitter(), { stat: () => undefined });
  const byShell = { label: 'there' } as ShellFiles;
  const files = new SftpFiles(sftp as unknown as SFTPWrapper, {} as RemoteShell, byShell);
  const dropped = files.stat('a');
  sftp.emit('end');
  await expect(dropped).rejects.toMatchObject({ code: 'site-unreachable', retry: 'later' });
  await expect(files.stat('b')).rejects.toMatchObject({ code: 'site-unreachable', retry: 'later' });
});
