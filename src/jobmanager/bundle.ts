import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Backend } from '../backends/contract.ts';

/**
 * The programs carried to a site, named by the hash of their content, so that a new version never changes an old one.
 */
export interface Bundle {
  readonly hash: string;
  /** Names without blanks. */
  readonly names: readonly string[];
  /** Run in the agent's directory there, it installs all of them in bin/HASH, or nothing. */
  readonly installer: string;
}

const COMMON = [
  'jobmanager.sh',
  'records.sh',
  'submitting.sh',
  'arrays.sh',
  'looking.sh',
  'watching.sh',
  'asking.sh',
  'carrying.sh',
  'sweeping.sh',
  'proxies.sh',
  'wrapper.sh',
  'inputs.sh',
  'io-proxy.sh',
  'again.sh',
  'memory.sh',
];

/** `prelude`: the site's own shell lines, run before any of our code. */
export async function makeBundle(backend: Backend, prelude: string): Promise<Bundle> {
  const files = new Map<string, string>([['prelude.sh', `${prelude}\n`]]);
  for (const name of COMMON) files.set(name, await readFile(new URL(name, import.meta.url), 'utf8'));
  files.set('delegate.sh', await readFile(new URL('../credentials/delegate.sh', import.meta.url), 'utf8'));
  files.set('ends.sh', await readFile(new URL('../util/ends.sh', import.meta.url), 'utf8'));
  for (const [index, name] of backend.shell.entries()) {
    files.set(
      index === 0 ? 'backend.sh' : name,
      await readFile(new URL(`../backends/${name}`, import.meta.url), 'utf8'),
    );
  }
  const digest = createHash('sha256');
  for (const [name, text] of files) digest.update(`${name}\0${text}\0`);
  const hash = digest.digest('hex').slice(0, 16);
  const names = [...files.keys(), NAMES];
  files.set(NAMES, `${names.join(' ')}\n`);
  return { hash, names, installer: installer(hash, files) };
}

/** The file that lists all the names. */
const NAMES = 'names';

function installer(hash: string, files: ReadonlyMap<string, string>): string {
  const mark = `GRYPHUS_END_${hash}`;
  const writes = [...files].map(
    ([name, text]) => `cat >"$new"/${name} <<'${mark}' || fail\n${text}${text.endsWith('\n') ? '' : '\n'}${mark}\n`,
  );
  return `umask 077
new=bin/${hash}.new.$$
fail() { rm -rf "$new"; echo 'gryphus: the disk of the site is full, or its home directory is not writable' >&2; exit 74; }
whole() { for file in ${[...files.keys()].join(' ')}; do [ -s "bin/${hash}/$file" ] || return; done; }
mkdir -p bin && mkdir "$new" || fail
${writes.join('')}chmod 700 "$new"/*.sh
# Another client may have been quicker; what a cleaner has left of it is of no use.
whole || { rm -rf "bin/${hash}"; mv "$new" "bin/${hash}"; } || whole || fail
rm -rf "$new"
echo installed
`;
}
