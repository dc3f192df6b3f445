import { chownSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { shellQuote } from '../../../util/shell-quote.ts';

/** The texts of the scripts by which a parallel job starts its processes, by their names. */
export interface LauncherScripts {
  readonly rsh: string;
  readonly common: string;
  readonly mpichscript: string;
  readonly openmpiscript: string;
  readonly batchscript: string;
}

/** Where a node finds them, in its own directory. */
export const LAUNCHERS = '.gryphus';

/** Puts the scripts and the token of a node where its job finds them; returns the job's variables for them. */
export function placeLaunchers(
  work: string,
  { rsh, common, mpichscript, openmpiscript, batchscript }: LauncherScripts,
  {
    port,
    cookie,
    user,
  }: { readonly port: number; readonly cookie: string; readonly user: { uid: number; gid: number } | undefined },
): Readonly<Record<string, string>> {
  const dir = join(work, LAUNCHERS);
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const files = {
    'gryphus-rsh': rsh.replace('@NODE@', () => shellQuote(process.execPath)),
    mpichscript: mpichscript.replace('@COMMON@', () => common),
    openmpiscript: openmpiscript.replace('@COMMON@', () => common),
    batchscript: batchscript.replace('@COMMON@', () => common),
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text, { mode: 0o700 });
  writeFileSync(join(dir, 'gang'), `${port} ${cookie}\n`, { mode: 0o600 });
  if (user) for (const name of ['', 'gang', ...Object.keys(files)]) chownSync(join(dir, name), user.uid, user.gid);
  return { GRYPHUS_LAUNCHERS: dir, GRYPHUS_RSH: join(dir, 'gryphus-rsh'), GRYPHUS_GANG: join(dir, 'gang') };
}
