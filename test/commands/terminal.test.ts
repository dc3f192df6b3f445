import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { atTerminal, gryphus } from './cli.ts';

let home: string;
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'gry-'));
  const text = 'executable = /bin/true\nhold = true\nqueue\n';
  await gryphus(['submit'], { home, stdin: text });
  // What a site sends, verbatim: a window title, a C1 introducer, a bell.
  await gryphus(['edit', '1.0', 'Said="\u001b]0;mine\u0007 \u009b2J\u007f\tend"'], { home });
});
afterAll(async () => {
  await gryphus(['down'], { home });
  rmSync(home, { recursive: true });
});

describe('at a terminal of 80 columns', () => {
  it('totals fit', async () => {
    const lines = (await atTerminal(['q'], { home })).split('\n');
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
    expect(lines).toContain('Total for query: 1 jobs; 1 held ');
    const wide = (await atTerminal(['q'], { home }, 120)).split('\n');
    expect(wide).toContain('Total for query: 1 jobs; 0 completed, 0 removed, 0 idle, 0 running, 1 held, 0 suspended ');
  });

  it('submit says that it reads what is typed', async () => {
    const shown = await atTerminal(['submit'], { home, stdin: 'executable = /bin/true\nhold = true\nqueue\n\u0004' });
    expect(shown).toContain('Type the submit description; Ctrl-D ends it.');
  });
});

describe('how far the jobs are', () => {
  const BAR = /\[[█░]{30}\] \d+ % \d of 2 done, \d running/;
  const text = 'executable = /bin/sleep\narguments = 3\nqueue 2\n';

  it('is shown at a terminal while a command waits for them, and nowhere else', async () => {
    const file = join(home, 'two.sub');
    writeFileSync(file, text);
    const shown = await atTerminal(['submit', file, '--wait'], { home });
    expect(shown).toMatch(BAR);
    expect(shown.endsWith('\r\u001b[K')).toBe(true);
    const { stdout, stderr } = await gryphus(['submit', '--terse', '--wait'], { home, stdin: text });
    expect(stderr).toBe('');
    expect(stdout).not.toMatch(BAR);
    const cluster = (await gryphus(['submit', '--terse', file], { home })).stdout.split('.')[0] ?? '';
    expect(await atTerminal(['wait', cluster], { home })).toMatch(BAR);
  }, 120_000);
});

describe('a terminal obeys nothing that a job or a site says', () => {
  const raw = '\u001b]0;mine\u0007 \u009b2J\u007f\tend';
  const harmless = String.raw`\x1b]0;mine\x07 \x9b2J\x7f`;

  it.each([
    [['q', '-af', 'Said']],
    [['q', '-l', '--attributes', 'Said']],
    [['q', '-format', '%s\n', 'Said']],
    [['q', '--xml', '--attributes', 'Said']],
  ])('%j', async (words) => {
    const shown = await atTerminal(words, { home });
    expect(shown).toContain(harmless);
    expect(shown).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/);
    // A pipe gets it unchanged.
    const { stdout } = await gryphus(words, { home });
    expect(stdout).toContain(raw);
  });

  it('nor does that of who reads a log', async () => {
    const log = join(home, 'odd.log');
    writeFileSync(
      log,
      '000 (007.000.000) 2026-11-20 00:00:00 Job submitted from host: <127.0.0.1>\n...\n009 (007.000.000) 2026-11-20 00:00:00 Job was aborted.\n\tfor \u009b2J \u001b[2J\n...\n',
    );
    expect(await atTerminal(['log', log], { home })).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/);
  });
});
