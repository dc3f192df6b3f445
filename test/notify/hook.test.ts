import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { notifyDesktop, runHook } from '../../src/notify/hook.ts';
import { testMessage } from '../../src/notify/messages.ts';

const dir = mkdtempSync(join(tmpdir(), 'hook-'));
const out = join(dir, 'out');
const message = { ...testMessage('home', 0), subject: '$(id) "x"\n', body: 'a <b> & $(c)\n' };
afterAll(() => rmSync(dir, { recursive: true }));

describe('the hook for alarms', () => {
  it('gets the text on standard input and the subject in its environment', async () => {
    const end = await runHook(`{ printf '%s|' "$GRYPHUS_KIND" "$GRYPHUS_SUBJECT"; cat; } >'${out}'`, message);
    expect(end).toEqual({ ok: true });
    expect(readFileSync(out, 'utf8')).toBe('test|$(id) "x"\n|a <b> & $(c)\n');
  });

  it.each([
    ['exit 3', 'The alarm command exited with status 3.'],
    ['kill -TERM $$', 'The alarm command was killed by SIGTERM.'],
  ])('that fails is told, and stops nothing: %s', async (command, text) => {
    expect(await runHook(command, message)).toEqual({ ok: false, message: text });
  });

  it('that hangs is ended with all that it started', async () => {
    const late = join(dir, 'late');
    const end = await runHook(`(sleep 1; touch '${late}') & sleep 60`, message, 200);
    expect(end).toMatchObject({ ok: false, message: 'The alarm command did not end within 0.2 s.' });
    await new Promise((resolve) => {
      setTimeout(resolve, 1200); // longer than its child would have taken
    });
    expect(existsSync(late)).toBe(false);
  });

  it('that reads nothing of a long text is no failure', async () => {
    expect(await runHook('true', { ...message, body: 'x'.repeat(1 << 20) })).toEqual({ ok: true });
  });
});

describe('a note on the desktop', () => {
  it('is given to notify-send as words, with markup escaped', async () => {
    writeFileSync(join(dir, 'notify-send'), `#!/bin/sh\nprintf '%s|' "$@" >'${out}'\n`, { mode: 0o755 });
    expect(await notifyDesktop(message, `relative:${dir}:/usr/bin:/bin`)).toEqual({ ok: true });
    expect(readFileSync(out, 'utf8')).toBe(
      '--app-name=Gryphus|--urgency=critical|--|$(id) "x"\n|a &lt;b&gt; &amp; $(c)\n|',
    );
  });

  it('says what is missing where there is none', async () => {
    expect(await notifyDesktop(message, '/nowhere')).toMatchObject({ ok: false });
  });
});
