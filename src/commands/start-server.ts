import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { GryphusError } from '../errors.ts';
import { spawnApart } from '../util/spawn-apart.ts';

/** How long a server may take to start, in milliseconds. */
const START_MS = 60_000;

/**
 * Starts the server of the page and of programs (src/web/web-main.ts), which outlives this command, with these words and for the
 * agent of `home` (default: `$GRYPHUS_HOME`'s). It is ready when it writes to its standard output. `complaint` is what it wrote
 * to standard error. Rejects only if the server was not built.
 */
export async function startWebServer(
  words: readonly string[],
  home: string | undefined,
): Promise<{ readonly ready: boolean; readonly complaint: string }> {
  const main = fileURLToPath(new URL('../web-server/web-server.js', import.meta.url));
  if (!existsSync(main))
    throw new GryphusError('internal', `The server's program ${main} does not exist: run the build.`);
  const own = home ?? process.env['GRYPHUS_HOME'];
  // The server changes directory, so a relative home must be made absolute.
  const env = own ? { ...process.env, GRYPHUS_HOME: resolve(own) } : process.env;
  const child = spawnApart(process.execPath, [main, ...words], {
    stdio: ['ignore', 'pipe', 'pipe'],
    cwd: '/',
    env,
  });
  let complaint = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (complaint += text));
  const ready = await new Promise<boolean>((settle) => {
    const late = setTimeout(() => settle(false), START_MS);
    const end = (ok: boolean) => {
      clearTimeout(late);
      settle(ok);
    };
    child.stdout.once('data', () => end(true));
    child.once('close', () => end(false));
    child.once('error', () => end(false));
  });
  child.stdout.destroy();
  child.stderr.destroy();
  child.unref();
  return { ready, complaint: complaint.trim() };
}
