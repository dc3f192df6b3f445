// Builds the programs in C of native/ with gcc. Without gcc, or on another processor, everything but checkpoints, remote I/O and the
// command server works.
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** DIR/gryphus-helper; `undefined`, with a line on standard error, if it cannot be built. */
export function buildHelper(root, dir) {
  return build('gryphus-helper', 'checkpoints of jobs', { from: join(root, 'native'), archs: { x64: 'x86-64' } }, dir);
}

/** The same for DIR/gryphus-remote-io. */
export function buildRemoteIo(root, dir) {
  const archs = { x64: 'x86-64', arm64: 'arm64' };
  return build('gryphus-remote-io', 'remote I/O of jobs', { from: join(root, 'native/remote-io'), archs }, dir);
}

/** The same for DIR/gryphus-client, which asks the command server. */
export function buildClient(root, dir) {
  const archs = { x64: 'x86-64', arm64: 'arm64' };
  return build('gryphus-client', 'command server', { from: join(root, 'native/command-client'), archs }, dir);
}

function build(name, serves, { from, archs }, dir) {
  const no = (why) => void process.stderr.write(`Without ${name} (no ${serves}): ${why}\n`);
  if (process.platform !== 'linux' || !(process.arch in archs))
    return no(`it is for Linux on ${Object.values(archs).join(' and ')}.`);
  if (spawnSync('gcc', ['--version']).status !== 0 || spawnSync('make', ['--version']).status !== 0)
    return no('there is no gcc or make here. Install them (Debian: build-essential) and build again.');
  const out = mkdtempSync(join(tmpdir(), 'gryphus-native-'));
  try {
    const made = spawnSync('make', ['-s', '-C', from, `OUT=${out}`], { encoding: 'utf8' });
    if (made.status !== 0 || !existsSync(join(out, name))) return no(`gcc: ${made.stderr}`);
    mkdirSync(dir, { recursive: true });
    const program = join(dir, name);
    copyFileSync(join(out, name), program);
    return program;
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}
