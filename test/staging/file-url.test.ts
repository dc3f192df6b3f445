import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { loginFor } from '../../src/credentials/netrc.ts';
import { FETCHERS } from '../../src/staging/url/fetchers.ts';
import { fileNameOf, parseFileUrl, pathOf } from '../../src/staging/url/file-url.ts';
import { URL_SCHEMES } from '../../src/staging/url/schemes.ts';

describe('URLs of files', () => {
  it('a submit knows the same ways as the transfer', () => {
    expect(FETCHERS.flatMap((one) => one.schemes).sort()).toEqual([...URL_SCHEMES].sort());
  });

  it.each([
    ['http://h/a%20b/c%25d.txt?x=1#y', 'c%d.txt'],
    ['ftp://[::1]:2121//etc/motd', 'motd'],
    ['https://h/%C3%A9%24(x)', 'é$(x)'],
  ])('%s is the file %s', (text, name) => {
    expect(fileNameOf(parseFileUrl(text, URL_SCHEMES))).toBe(name);
  });

  it.each([
    ['http://u:geheim@h/x', /contains a log-in/],
    ['ftp://geheim@h/x', /contains a log-in/],
    ['osdf://h/x', /the scheme 'osdf', which cannot be fetched/],
    ['http://h:99999/x', /cannot be read/],
    ['ftp://h/a%0d%0aDELE%20x', /control character/],
    ['http://h/%zz', /without two hexadecimal digits/],
  ])('%s is refused in one sentence', (text, why) => {
    expect(() => parseFileUrl(text, URL_SCHEMES)).toThrow(why);
    expect(() => parseFileUrl(text, URL_SCHEMES)).not.toThrow(/geheim/);
  });

  it.each(['http://h/', 'http://h/dir/', 'http://h/a/..%2f..'])('%s names no file', (text) => {
    const url = parseFileUrl(text, URL_SCHEMES);
    if (text.includes('..')) expect(pathOf(url)).toBe('/a/../..');
    expect(() => fileNameOf(url)).toThrow(/has no file name/);
  });
});

describe('netrc', () => {
  const dir = mkdtempSync(join(tmpdir(), 'gnetrc-'));
  afterAll(() => rmSync(dir, { recursive: true, force: true }));
  const file = (text: string) => {
    const path = join(dir, 'netrc');
    writeFileSync(path, text, { mode: 0o600 });
    chmodSync(path, 0o600);
    return path;
  };

  it('gives the log-in of a host, else the default', () => {
    const path = file(
      '# mine\nmachine A.org login u password "p \\"q\\" #"\nmachine b\n login v\n password w\ndefault login x password y\n',
    );
    expect(loginFor(path, 'a.org')).toEqual({ user: 'u', password: 'p "q" #' });
    expect(loginFor(path, 'b')).toEqual({ user: 'v', password: 'w' });
    expect(loginFor(path, 'c')).toEqual({ user: 'x', password: 'y' });
    expect(loginFor(join(dir, 'none'), 'c')).toBeUndefined();
  });

  it('is refused by line, without its words, and when others can read it', () => {
    expect(() => loginFor(file('machine a login u\ngeheim\n'), 'a')).toThrow(/netrc, line 2: a keyword is none of/);
    expect(() => loginFor(file('machine a login u\n'), 'a')).toThrow(/line 1: the entry of a has no password/);
    const open = file('machine a login u password geheim\n');
    chmodSync(open, 0o644);
    expect(() => loginFor(open, 'a')).toThrow(/Others can use the file of log-ins/);
  });
});
