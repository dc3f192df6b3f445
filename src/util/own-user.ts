import { homedir, userInfo } from 'node:os';

/** Who runs this process. */
export interface OwnUser {
  readonly username: string;
  /** As the password file says; without an entry there, as HOME says. */
  readonly homedir: string;
  readonly uid: number;
  readonly gid: number;
  /** The login shell; absent without an entry in the password file. */
  readonly shell?: string | null;
}

/**
 * Like `os.userInfo`, which throws for a user without an entry in the password file, as in many containers: LOGNAME or USER is then
 * the name, or else the number, as `id` prints it.
 */
export function ownUser(env: NodeJS.ProcessEnv = process.env): OwnUser {
  try {
    return userInfo();
  } catch {
    const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0];
    const named = [env['LOGNAME'], env['USER']].find((name) => name !== undefined && /^[\w.][\w.@-]{0,63}$/.test(name));
    return { username: named ?? String(uid), homedir: homedir(), uid, gid };
  }
}
