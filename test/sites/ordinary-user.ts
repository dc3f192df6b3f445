import { chmodSync, chownSync, readFileSync } from 'node:fs';

/** An account that exists on every Debian. */
const NAME = 'daemon';

export interface User {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

/** The account that root borrows for what root may not do; `undefined` if an ordinary user runs the tests. */
export function ordinaryUser(): User | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((entry) => entry.startsWith(`${NAME}:`));
  const [, , uid = '', gid = ''] = line?.split(':') ?? [];
  if (uid === '') throw new Error(`no user ${NAME}`);
  return { name: NAME, uid: Number(uid), gid: Number(gid) };
}

/** The arguments to put before a command that is to run as that user. */
export function runsAs(user: User | undefined): readonly [program: string, ...words: string[]] {
  if (user === undefined) return ['env'];
  const names = [`USER=${user.name}`, `LOGNAME=${user.name}`];
  return ['setpriv', `--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups', '--', 'env', ...names];
}

/** Lets that user write to these directories of `home`, which was private before. */
export function letIn(user: User | undefined, home: string, ...dirs: readonly string[]): void {
  if (user === undefined) return;
  chmodSync(home, 0o711);
  for (const dir of dirs) chownSync(dir, user.uid, user.gid);
}
