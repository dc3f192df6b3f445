// Builds native/ with gcc into DIR/gryphus-helper. Without gcc, or on another processor, everything but checkpoints works.
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The program's path; `undefined`, with a line on standard error, if it cannot be built. */
export function buildHelper(root, dir) {
  const no = (why) => void process.stderr.write(`Without gryphus-helper (no checkpoints of jobs): ${why}\n`);
  if (process.platform !== 'linux' || process.arch !== 'x64') return no('it is for Linux on x86-64.');
  if (spawnSync('gcc', ['--version']).status !== 0 || spawnSync('make', ['--version']).status !== 0)
    return no('there is no gcc or make here. Install them (Debian: build-essential) and build again.');
  const out = mkdtempSync(join(tmpdir(), 'gryphus-native-'));
  try {
    const made = spawnSync('make', ['-s', '-C', join(root, 'native'), `OUT=${out}`], { encoding: 'utf8' });
    if (made.status !== 0 || !existsSync(join(out, 'gryphus-helper'))) return no(`gcc: ${made.stderr}`);
    mkdirSync(dir, { recursive: true });
    const program = join(dir, 'gryphus-helper');
    copyFileSync(join(out, 'gryphus-helper'), program);
    return program;
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}

/** The same for native/remote-io/, gryphus-remote-io. */
export function buildRemoteIo(root, dir) {
  const no = (why) => void process.stderr.write(`Without gryphus-remote-io (no remote I/O of jobs): ${why}\n`);
  if (process.platform !== 'linux' || !['x64', 'arm64'].includes(process.arch))
    return no('it is for Linux on x86-64 and arm64.');
  const out = mkdtempSync(join(tmpdir(), 'gryphus-native-'));
  try {
    const made = spawnSync('make', ['-s', '-C', join(root, 'native/remote-io'), `OUT=${out}`], { encoding: 'utf8' });
    if (made.status !== 0) return no(made.error?.message ?? made.stderr);
    mkdirSync(dir, { recursive: true });
    const program = join(dir, 'gryphus-remote-io');
    copyFileSync(join(out, 'gryphus-remote-io'), program);
    return program;
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}
