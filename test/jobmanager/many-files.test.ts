import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const ODD = [
  "a'b",
  'c"d',
  '$(touch made)',
  '`touch made`',
  'g\nh',
  'i\\j',
  'k&l',
  'x=y',
  'ü',
  "''",
  'end\n',
  '-n',
  '%s',
];

/** Those of these that this machine has. */
const AWKS = ['mawk', 'gawk', 'busybox awk'].filter((awk) => {
  try {
    execFileSync('sh', ['-c', `command -v ${awk.split(' ')[0]}`]);
    return true;
  } catch {
    return false;
  }
});

describe("the site's command that writes many files in one stream", () => {
  let dir: string;
  const source = readFileSync(join(import.meta.dirname, '../../src/jobmanager/carrying.sh'), 'utf8');
  const program = /^CATS='([^']*)'/m.exec(source)?.[1] ?? '';

  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'gry-many-files-'));
    mkdirSync(join(dir, 'jobs'));
    writeFileSync(join(dir, 'mark'), '\nmark\n');
  });
  afterEach(() => rmSync(dir, { recursive: true, force: true }));

  it.each(AWKS)('takes whatever names they have, with %s', (awk) => {
    const names = ODD.map((name) => `jobs/${name}`);
    for (const [i, name] of names.entries()) writeFileSync(join(dir, name), Buffer.from([i, 0, 255, 10]));
    const script = `program=$1; shift; mark=mark; eval "$(LC_ALL=C ${awk} "$program" "$@")"`;
    const written = execFileSync('sh', ['-c', script, 'sh', program, ...names], { cwd: dir });
    const whole = names.map((_, i) => Buffer.concat([Buffer.from([i, 0, 255, 10]), Buffer.from('\nmark\n')]));
    expect(written.equals(Buffer.concat(whole))).toBe(true);
    expect(() => readFileSync(join(dir, 'made'))).toThrow('ENOENT');
  });
});
