import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { TestAgent } from './agent.ts';

const DIR = join(import.meta.dirname, '../fixtures/releases');
/** The directory of the agent whose files were kept; as long as that of every TestAgent. */
const KEPT = 'gry-FixtuR';

/** What each release left on disk, oldest first (test/fixtures/releases/README.md). */
export const RELEASES: readonly string[] = readdirSync(DIR)
  .filter((name) => name.endsWith('.tgz'))
  .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));

// Without any, tests of each release would be none.
if (RELEASES.length === 0) throw new Error(`no release is kept in ${DIR}`);

/** Gives an agent that has not been started the files that a release left, as if it had been that agent's. */
export function unpackRelease(agent: TestAgent, release: string): void {
  for (const name of ['g', 'work', 'home']) rmSync(join(agent.dir, name), { recursive: true, force: true });
  execFileSync('tar', ['-xzf', join(DIR, release), '-C', agent.dir, '--no-same-owner']);
  for (const entry of readdirSync(agent.dir, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    // Bytes of the same length: Redis' file, among others, says how long each text is.
    const text = readFileSync(path, 'latin1');
    if (text.includes(KEPT)) writeFileSync(path, text.replaceAll(KEPT, basename(agent.dir)), 'latin1');
  }
}
