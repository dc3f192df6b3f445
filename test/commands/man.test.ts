import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { allCommands } from '../../src/commands/registry.ts';
import { manMarkup } from '../../src/commands/show/man-markup.ts';
import { manPages } from '../../src/commands/show/man.ts';
import { formats } from '../../scripts/man.mjs';
import { some } from '../slow.ts';

const COMMANDS = await allCommands();

const ROOT = join(import.meta.dirname, '../..');
let dir: string;
let pages: readonly string[];

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'gry-man-'));
  const made = manPages(COMMANDS, await formats(join(ROOT, 'src'), '.ts'), { version: '1.2.3', date: '2026-01-31' });
  for (const { file, text } of made) writeFileSync(join(dir, file), text);
  pages = made.map(({ file }) => file);
});
afterAll(() => rmSync(dir, { recursive: true }));

/** A page as a terminal of 80 columns shows it. */
function shown(page: string): string {
  const env = { ...process.env, MANWIDTH: '80', LC_ALL: 'C.UTF-8', MAN_KEEP_FORMATTING: '' };
  return execFileSync('man', ['-P', 'cat', '-l', join(dir, page)], { env, encoding: 'utf8' });
}

describe('the manual pages', () => {
  it('are accepted by groff and mandoc without a warning', () => {
    const paths = pages.map((page) => join(dir, page));
    const groffed = some(paths, 8);
    const env = { ...process.env, LC_ALL: 'C.UTF-8' };
    const groff = spawnSync('man', ['--warnings', '-Tutf8', '-Z', '-l', ...groffed], {
      env,
      encoding: 'utf8',
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    expect([groff.status, groff.stderr]).toEqual([0, '']);
    const mandoc = spawnSync('mandoc', ['-Tlint', '-Wwarning', ...paths], { encoding: 'utf8' });
    expect([mandoc.status, mandoc.stdout]).toEqual([0, '']);
  });

  it('are those that the package installs', () => {
    const { man } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { man: string[] };
    expect(man, 'node scripts/docs.mjs writes them').toEqual(pages.map((page) => `./dist/man/${page}`));
  });

  it('of the commands show every option and every example as they are typed', () => {
    for (const [id, command] of Object.entries(COMMANDS)) {
      const { examples } = command;
      const flags: Record<string, { hidden?: boolean }> = 'flags' in command ? { ...command.flags } : {};
      const text = readFileSync(join(dir, `gryphus-${id.replace(':', '-')}.1`), 'utf8').replaceAll(/\\f[BIR]/g, '');
      for (const [flag, { hidden }] of Object.entries(flags))
        if (hidden !== true) expect(text).toContain(`--${flag}`.replaceAll('-', '\\-'));
      expect(text).toContain('.SH "EXAMPLES"');
      expect(text.split('.SH "EXAMPLES"')[1]?.split('.fi')[0]?.trim().split('\n').length).toBe(examples.length + 2);
    }
  });

  it('have the sections of a manual page in their order', () => {
    const text = shown('gryphus-wait.1');
    expect(text.match(/^[A-Z][A-Z ]+$/gm)).toEqual([
      'NAME',
      'SYNOPSIS',
      'DESCRIPTION',
      'ARGUMENTS',
      'OPTIONS',
      'EXAMPLES',
      'EXIT STATUS',
      'FILES',
      'SEE ALSO',
    ]);
    expect(text).toMatch(/^ {7}gryphus-wait - wait until jobs have ended$/m);
    expect(text).toMatch(/^ {7}-c, --constraint expression$/m);
    expect(text).toContain('gryphus wait 12 --until settled || gryphus retry 12');
  });

  it('of the formats list every key', () => {
    expect(shown('gryphus-configuration.5')).toMatch(/^ {7}scheduler\.periodic_interval\n {14}Default: +"60s"\./m);
    expect(shown('gryphus-submit-commands.5')).toMatch(/^ {7}accounting_group\n {14}Attribute: +AcctGroup\./m);
  });
});

it('text that roff would take for its own is shown as it is', () => {
  const text = manMarkup(
    "# t\n\n.x 'y'\n\n    'a' \\n ~ `b` ^-1\n\n- `-a`, `--b <c>`: see [d](e.md), [f](https://g.org)\n",
    'Top',
  );
  expect(text).toBe(
    [
      '.SH "TOP"\n\\&.x \'y\'\n.PP\n.RS 4\n.nf\n\\(aqa\\(aq \\(rsn \\(ti \\(gab\\(ga \\(ha\\-1\n.fi\n.RE',
      '.TP\n\\fB\\-a\\fR, \\fB\\-\\-b \\fR\\fIc\\fR\nsee d, f <https://g.org>\n',
    ].join('\n'),
  );
});
