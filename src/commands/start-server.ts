import { spawn } from 'node:child_process';
import { resolve } from 'node:path';

/** How long a server may take to start, in milliseconds. */
const START_MS = 60_000;

/**
 * Starts Node with these words as a server that outlives this command, for the agent of `home` (default: `$GRYPHUS_HOME`'s).
 * It is ready when it writes to its standard output. Never rejects; `complaint` is what it wrote to standard error.
 */
export async function startServer(
  words: readonly string[],
  home: string | undefined,
): Promise<{ readonly ready: boolean; readonly complaint: string }> {
  const own = home ?? process.env['GRYPHUS_HOME'];
  // The server changes directory, so a relative home must be made absolute.
  const env = own ? { ...process.env, GRYPHUS_HOME: resolve(own) } : process.env;
  const child = spawn(process.execPath, words, { detached: true, stdio: ['ignore', 'pipe', 'pipe'], cwd: '/', env });
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
