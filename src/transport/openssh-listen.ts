import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { GryphusError } from '../errors.ts';
import type { ListenAt, Listening, ListenPlace } from './contract.ts';
import { listenHere } from './local-listen.ts';
import type { Master } from './openssh-master.ts';

/** A remote forward of a shared connection (`ssh -O forward -R`) that leads to a socket of ours. */
export async function listenByOpenssh(
  master: Master,
  label: string,
  at: ListenAt,
  onStream: (stream: Duplex) => void,
): Promise<Listening> {
  const dir = mkdtempSync(join(tmpdir(), 'gry-'));
  const path = join(dir, 's');
  const here = await listenHere({ kind: 'socket', path }, onStream);
  const far = at.kind === 'socket' ? at.path : '127.0.0.1:0';
  const forward = (what: 'forward' | 'cancel'): Promise<string> => control(master, what, `${far}:${path}`);
  const close = (): void => {
    here.close();
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    const said = await forward('forward');
    const place: ListenPlace = at.kind === 'socket' ? at : { kind: 'port', port: portIn(said) };
    void master.lost.then(close);
    return {
      place,
      closed: here.closed,
      close: () => {
        void forward('cancel').catch(() => undefined);
        close();
      },
    };
  } catch (cause) {
    close();
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new GryphusError('site-refused', `${label} does not forward connections: ${message}.`, { cause });
  }
}

function portIn(said: string): number {
  const port = Number(/(\d+)\s*$/.exec(said)?.[1]);
  if (Number.isInteger(port) && port > 0) return port;
  throw new Error(`ssh reported no port: ${said.trim()}`);
}

function control(master: Master, what: 'forward' | 'cancel', between: string): Promise<string> {
  const args = ['-F', 'none', '-S', master.controlPath, '-O', what, '-R', between, '--', 'shared'];
  return new Promise((resolve, reject) => {
    execFile('ssh', args, (error, stdout, stderr) => {
      if (error) reject(new Error(stderr.trim().split('\n').at(-1) || error.message));
      else resolve(stdout);
    });
  });
}
