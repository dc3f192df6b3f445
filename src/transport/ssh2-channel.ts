import type { Client, ClientChannel, SFTPWrapper } from 'ssh2';
import { asError } from '../errors.ts';
import type { Channel, ChannelEnd } from './contract.ts';

const SFTP_START_MS = 10_000;

/** Whether the server refused one more channel, which leaves the connection usable. */
export function isRefusal(thrown: unknown): boolean {
  return /channel open failure/i.test(asError(thrown).message);
}

/**
 * Starts a command line. The listeners are added at once because one packet may contain all output of a quick command.
 */
export function exec(client: Client, line: string, whyLost: () => Error | undefined): Promise<Channel> {
  return new Promise((resolve, reject) => {
    client.exec(line, (error, raw) => {
      if (error) return reject(error);
      const closed = channelEnd(raw, whyLost);
      resolve({ stdin: raw, stdout: raw, stderr: raw.stderr, closed, kill: () => raw.close() });
    });
  });
}

export function startSftp(client: Client): Promise<SFTPWrapper> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('sftp did not start')), SFTP_START_MS);
    client.sftp((error, sftp) => {
      clearTimeout(timer);
      if (error) reject(error);
      else resolve(sftp);
    });
  });
}

/** ssh2 reports a command's status with 'exit', which never comes if the connection is lost first. */
function channelEnd(raw: ClientChannel, whyLost: () => Error | undefined): Promise<ChannelEnd> {
  return new Promise((resolve) => {
    let end: ChannelEnd | undefined;
    raw.once('exit', (code: number | null, signal?: string) => {
      end = code === null ? { kind: 'signaled', signal: (signal ?? '').replace(/^SIG/, '') } : { kind: 'exited', code };
    });
    raw.once('close', () => {
      resolve(end ?? { kind: 'lost', reason: whyLost() ?? new Error('the command ended without a status') });
    });
  });
}
