import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { removeTree } from '../remove-tree.ts';

/** Commands that answer like those of a batch system that cannot be installed here, and really run their jobs. */
export interface FakeBatch {
  readonly env: Readonly<Record<string, string>>;
  readonly dir: string;
  run(command: string, ...args: string[]): string;
  stop(): Promise<void>;
}

const HERE = resolve(import.meta.dirname, '../backends/fake-batch');

/** `script`: beside engine.sh, called with the name of the command first. */
export async function startFake(script: string, commands: readonly string[]): Promise<FakeBatch> {
  const dir = mkdtempSync('/tmp/gfb-');
  const bin = join(dir, 'bin');
  mkdirSync(bin);
  for (const name of commands) {
    writeFileSync(join(bin, name), `#!/bin/sh\nexec sh '${join(HERE, script)}' ${name} "$@"\n`);
    chmodSync(join(bin, name), 0o755);
  }
  const env = { FAKE_BATCH: dir, PATH: `${bin}:${process.env['PATH'] ?? ''}` };
  return {
    env,
    dir,
    run: (command, ...args) =>
      execFileSync(join(bin, command), args, {
        encoding: 'utf8',
        env: { ...process.env, ...env },
        stdio: ['ignore', 'pipe', 'pipe'],
      }),
    async stop() {
      for (const id of readdirSync(join(dir, 'jobs'))) killSession(join(dir, 'jobs', id));
      await removeTree(dir);
    },
  };
}

/** Processes that a test left running. */
function killSession(job: string): void {
  try {
    const pid = readFileSync(join(job, 'pid'), 'utf8').trim();
    if (readFileSync(join(job, 'state'), 'utf8').trim() === 'running') execFileSync('pkill', ['-KILL', '-s', pid]);
  } catch {
    // It never started, or has ended.
  }
}
