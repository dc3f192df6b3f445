import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** An account of this machine. */
export interface Account {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
}

/** A name that no program takes for an option or a number. */
const NAME = /^[A-Za-z_][\w.-]{0,127}\$?$/;
/** A directory service that does not answer must not stop the worker for long. */
const ASK_MS = 5000;

/** From /etc/passwd, or else whatever other source the machine has (LDAP, sssd). */
export function accountOf(name: string): Account | undefined {
  if (!NAME.test(name)) return undefined;
  return entryOf(name, textOf('/etc/passwd')) ?? entryOf(name, saidBy('getent', ['passwd', '--', name]));
}

/** The ids of all its groups, its own first. */
export function groupsOf({ name, gid }: Account): readonly number[] {
  const all = saidBy('id', ['-G', '--', name])
    .trim()
    .split(' ')
    .filter((word) => /^\d+$/.test(word))
    .map(Number);
  return [...new Set([gid, ...all])];
}

function entryOf(name: string, passwd: string): Account | undefined {
  const line = passwd.split('\n').find((entry) => entry.startsWith(`${name}:`));
  const [, , uid = '', gid = '', , home = ''] = line?.split(':') ?? [];
  return /^\d+$/.test(uid) && /^\d+$/.test(gid) ? { name, uid: Number(uid), gid: Number(gid), home } : undefined;
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function saidBy(program: string, args: readonly string[]): string {
  const { status, stdout } = spawnSync(program, args, {
    encoding: 'utf8',
    timeout: ASK_MS,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return status === 0 ? stdout : '';
}
