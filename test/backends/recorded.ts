import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LOOK, readFound } from '../../src/backends/found.ts';

const BACKENDS = join(import.meta.dirname, '../../src/backends');

export function fixture(name: string): string {
  return readFileSync(new URL(`../fixtures/${name}`, import.meta.url), 'utf8');
}

/** Recorded refusals: lines `STATUS TAB WORDS`, in which `\n` is a newline. */
export function refusals(name: string): [status: number, words: string][] {
  return fixture(name)
    .trimEnd()
    .split('\n')
    .map((line) => {
      const [status = '', message = ''] = line.split('\t', 2);
      return [Number(status), message.replaceAll('\\n', '\n')];
    });
}

/** The lines that a call of a backend's shell half prints if commands print what was recorded. */
export function shellHalf(
  backend: string,
  answers: Readonly<Record<string, string>>,
  call: string,
  more: Readonly<Record<string, string>> = {},
  tools: { readonly awk?: readonly string[]; readonly sh?: readonly string[] } = {},
): string[] {
  const dir = mkdtempSync(join(tmpdir(), 'grc-'));
  try {
    mkdirSync(join(dir, 'bin'));
    for (const [command, answer] of Object.entries(answers)) {
      writeFileSync(join(dir, 'bin', `${command}.answer`), answer);
      writeFileSync(join(dir, 'bin', command), `#!/bin/sh\ncat '${join(dir, 'bin', command)}.answer'\n`);
      chmodSync(join(dir, 'bin', command), 0o755);
    }
    if (tools.awk !== undefined) {
      writeFileSync(join(dir, 'bin/awk'), `#!/bin/sh\nexec ${tools.awk.join(' ')} "$@"\n`, { mode: 0o755 });
    }
    const [sh = 'sh', ...options] = tools.sh ?? [];
    const common = 'say() { printf "%s\\n" "$*"; }; bounded() { shift; "$@"; }; tick() { :; }';
    const script = `set -ufC\n${common}\nBIN=$1 T=$2 ROOT=$2 PREFIX=gryphus.a.\n. "$BIN/${backend}.sh"\n${call}\ntrue\n`;
    const path = more['PATH'] ?? process.env['PATH'] ?? '';
    const env = { ...process.env, ...more, PATH: `${join(dir, 'bin')}:${path}` };
    return execFileSync(sh, [...options, '-c', script, 'sh', BACKENDS, dir], { encoding: 'utf8', env })
      .trimEnd()
      .split('\n');
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Which batch systems are detected in such an environment, ignoring this machine's own. */
export function look(env: Readonly<Record<string, string>>): ReturnType<typeof readFound> {
  const input = LOOK.replace(/^PATH=.*\n/m, '');
  return readFound(execFileSync('sh', ['-s'], { input, encoding: 'utf8', env: { ...process.env, ...env } }));
}
