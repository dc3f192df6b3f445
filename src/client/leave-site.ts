import type { Paths } from '../config/paths.ts';
import { loadSite, removeSite, type SiteRecord } from '../config/sites.ts';
import { GryphusError } from '../errors.ts';
import { transportTo } from '../open-site/open-site.ts';
import { shellPath, shellQuote } from '../util/shell-quote.ts';
import { promptOf } from './prompt.ts';
import type { AskUser, LeftSite } from './types.ts';

/** How long removing a large directory may take, in milliseconds. */
const CLEAN_MS = 300_000;

/**
 * Removes one agent's directories, `$1`, below the site's, `$2`, and then empty directories up to `$3`; other agents'
 * stay. Retries, since processes that are ending may write once more. Status 1: something remains.
 */
const CLEAN = `n=0
while :; do
  left=
  for dir in "$2/$1" "$2"/+*/"$1"; do
    [ -d "$dir" ] && [ ! -h "$dir" ] || continue
    find "$dir" -type d ! -perm -700 -exec chmod u+rwx {} + 2>/dev/null
    rm -rf "$dir" 2>/dev/null
    [ ! -d "$dir" ] || left=$dir
  done
  [ -n "$left" ] || break
  n=$((n + 1)); [ "$n" -lt 10 ] || exit 1
  sleep 1
done
rmdir "$2"/+* 2>/dev/null
rmdir "$2" 2>/dev/null && rmdir "$3" 2>/dev/null
exit 0`;

/** Forgets a site; with `clean`, first removes this agent's files there. 'not-permitted': the site is built in. */
export async function leaveSite(
  paths: Paths,
  name: string,
  { agent, clean, ask }: { readonly agent: string; readonly clean?: boolean; readonly ask?: AskUser },
): Promise<LeftSite> {
  const record = await loadSite(paths, name);
  const { target } = record;
  const base = (record.scratch ?? '~/.gryphus').replace(/\/+$/, '');
  const left: LeftSite = target.kind === 'gram' ? {} : { directory: `${base}/${name}`, command: removal(record, base) };
  if (!clean || target.kind === 'gram') {
    forget(paths, name);
    return left;
  }
  const transport = await transportTo(record, { prompt: promptOf(ask), paths });
  try {
    // If the site cannot be reached, it must stay known.
    await transport.run(':');
    // This stops the GridManager there, so that it recreates nothing.
    forget(paths, name);
    const words = [shellQuote(agent), shellPath(`${base}/${name}`), shellPath(base)];
    const { code } = await transport.run(`sh -c ${shellQuote(CLEAN)} sh ${words.join(' ')}`, { timeoutMs: CLEAN_MS });
    return code === 0 ? {} : left;
  } finally {
    await transport.close();
  }
}

function forget(paths: Paths, name: string): void {
  if (removeSite(paths, name)) return;
  throw new GryphusError('not-permitted', `Site '${name}' is built in and cannot be removed.`, {
    suggestions: [`Change it with: gryphus site add ${name} local --batch fork`],
  });
}

/** The command with which a user can remove it. */
function removal({ name, target }: SiteRecord, base: string): string {
  const path = shellPath(`${base}/${name}`).replace(/^"\$HOME"/, '~');
  if (target.kind !== 'ssh') return `rm -rf ${path}`;
  const port = target.port === undefined ? '' : `-p ${target.port} `;
  const host = target.user === undefined ? target.host : `${target.user}@${target.host}`;
  return `ssh ${port}${shellQuote(host)} ${shellQuote(`rm -rf ${path}`)}`;
}
