import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Backend } from '../backends/contract.ts';
import { shellQuote } from '../util/shell-quote.ts';

/** The programs that are carried to a site, under the hash of their content: a new version never touches an old one. */
export interface Bundle {
  readonly hash: string;
  /** Run with `sh -s DIRECTORY` there, it leaves them whole in DIRECTORY/hash, or nothing. */
  readonly installer: string;
}

const COMMON = [
  'jobmanager.sh',
  'records.sh',
  'submitting.sh',
  'arrays.sh',
  'looking.sh',
  'carrying.sh',
  'sweeping.sh',
  'proxies.sh',
  'wrapper.sh',
  'memory.sh',
];

/** `prelude`: the site's own shell lines, which are run before anything of ours. */
export async function makeBundle(backend: Backend, prelude: string): Promise<Bundle> {
  const files = new Map<string, string>([['prelude.sh', `${prelude}\n`]]);
  for (const name of COMMON) files.set(name, await readFile(new URL(name, import.meta.url), 'utf8'));
  files.set('delegate.sh', await readFile(new URL('../credentials/delegate.sh', import.meta.url), 'utf8'));
  for (const [index, name] of backend.shell.entries()) {
    files.set(
      index === 0 ? 'backend.sh' : name,
      await readFile(new URL(`../backends/${name}`, import.meta.url), 'utf8'),
    );
  }
  const digest = createHash('sha256');
  for (const [name, text] of files) digest.update(`${name}\0${text}\0`);
  const hash = digest.digest('hex').slice(0, 16);
  return { hash, installer: installer(hash, files) };
}

function installer(hash: string, files: ReadonlyMap<string, string>): string {
  const mark = `GRYPHUS_END_${hash}`;
  const writes = [...files].map(
    ([name, text]) =>
      `cat >"$new"/${shellQuote(name)} <<'${mark}' || fail\n${text}${text.endsWith('\n') ? '' : '\n'}${mark}\n`,
  );
  return `umask 077
new=$1/${hash}.new.$$
fail() { rm -rf "$new"; echo 'gryphus: the disk of the site is full, or its home cannot be written' >&2; exit 74; }
mkdir -p "$1" && mkdir "$new" || fail
${writes.join('')}chmod 700 "$new"/*.sh
# Another client may have been quicker.
[ -d "$1/${hash}" ] || mv "$new" "$1/${hash}" || fail
rm -rf "$new"
echo installed
`;
}
