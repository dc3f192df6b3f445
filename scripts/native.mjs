// Builds the programs in C of native/: with gcc those for this processor, and with Debian's cross compiler those for the
// other one. Without a compiler everything but checkpoints, remote I/O and the command server works.
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const PROGRAMS = {
  'gryphus-helper': { from: 'native', serves: 'checkpoints of jobs' },
  'gryphus-remote-io': { from: 'native/remote-io', serves: 'remote I/O of jobs' },
  'gryphus-client': { from: 'native/command-client', serves: 'command server' },
};

/** By Node's name of a processor: the compilers for it, each with the Debian packages that have it. */
const COMPILERS = {
  x64: { cross: 'x86_64-linux-gnu-gcc', packages: 'gcc-x86-64-linux-gnu libc6-dev-amd64-cross' },
  arm64: { cross: 'aarch64-linux-gnu-gcc', packages: 'gcc-aarch64-linux-gnu libc6-dev-arm64-cross' },
};

/** DIR/ARCH/NAME of each program; a line on standard error for a processor without a compiler, or a program that cannot be built. */
export function buildNative(root, dir) {
  for (const [arch, { cross, packages }] of Object.entries(COMPILERS)) {
    const isOurs = process.platform === 'linux' && arch === process.arch;
    const compiler = isOurs ? 'gcc' : cross;
    const missing = [compiler, 'make'].find((tool) => spawnSync(tool, ['--version']).status !== 0);
    if (missing) {
      const serves = Object.values(PROGRAMS).map((program) => program.serves);
      process.stderr.write(
        `The C programs for ${arch} are not built, because ${missing} is not installed; not available there: ` +
          `${serves.join(', ')}. To add them: apt install ${isOurs ? 'build-essential' : packages}, and build again.\n`,
      );
      continue;
    }
    for (const [name, { from, serves }] of Object.entries(PROGRAMS)) {
      const why = build(name, { from: join(root, from), compiler }, join(dir, arch));
      if (why) process.stderr.write(`${name} for ${arch} is not built (no ${serves} there): ${why}\n`);
    }
  }
}

/** Returns why it could not be built. */
function build(name, { from, compiler }, dir) {
  const out = mkdtempSync(join(tmpdir(), 'gryphus-native-'));
  try {
    const made = spawnSync('make', ['-s', '-C', from, `CC=${compiler}`, `OUT=${out}`], { encoding: 'utf8' });
    if (made.status !== 0 || !existsSync(join(out, name))) return `${compiler}: ${made.stderr}`;
    mkdirSync(dir, { recursive: true });
    copyFileSync(join(out, name), join(dir, name));
    return undefined;
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}
