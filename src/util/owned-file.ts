import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { GryphusError } from '../errors.ts';
import { shellQuote } from './shell-quote.ts';
import { ownUser } from './own-user.ts';

/**
 * The text of a file that says what runs as this user. As with ssh's own configuration, it and the directories above it
 * up to `top` must be ours or root's, and nobody else may write there. Throws 'not-permitted' with the chmod to type, or
 * the system's error.
 */
export function readOwnText(file: string, top: string): string {
  const fd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const found = fstatSync(fd);
    if (!found.isFile()) throw new Error('it is not an ordinary file');
    check(file, found);
    let directory = dirname(file);
    check(directory, statSync(directory));
    while (directory !== top && directory.startsWith(`${top}/`)) {
      directory = dirname(directory);
      check(directory, statSync(directory));
    }
    return readFileSync(fd, 'utf8');
  } finally {
    closeSync(fd);
  }
}

function check(path: string, { uid, gid, mode }: Stats): void {
  const mine = process.getuid?.();
  if (mine !== undefined && uid !== mine && uid !== 0) {
    throw new GryphusError('not-permitted', `${path} belongs to another user (uid ${uid}), so it is not used.`, {
      suggestions: [`Make it yours: chown ${mine} ${shellQuote(path)}`],
    });
  }
  const others = (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && !isPrivateGroup(gid));
  if (!others) return;
  const octal = (mode & 0o7777).toString(8).padStart(4, '0');
  throw new GryphusError('not-permitted', `Others may write to ${path} (mode ${octal}), so it is not used.`, {
    suggestions: [`Close it: chmod go-w ${shellQuote(path)}`],
  });
}

/** Where each user has a group of the same name, the usual umask lets the group write; nobody else is in it. */
function isPrivateGroup(group: number): boolean {
  const { username, gid } = ownUser();
  if (group !== gid) return false;
  try {
    const line = readFileSync('/etc/group', 'utf8')
      .split('\n')
      .find((one) => one.split(':')[2] === String(group));
    const [name, , , members = ''] = line?.split(':') ?? [];
    return name === username && members.split(',').every((member) => member === '' || member === username);
  } catch {
    return false;
  }
}
