import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { urlAccess } from '../../src/gridmanager/url-access.ts';

it('the settings of URLs are those of the moment', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'gurl-'));
  const settings: { 'urls.netrc': string | undefined; 'urls.ca': string | undefined } = {
    'urls.netrc': undefined,
    'urls.ca': undefined,
  };
  const access = urlAccess({ configDir: dir }, settings);
  const url = new URL('https://there/x');
  expect(await access.optionsFor(url, undefined)).toEqual({});
  writeFileSync(join(dir, 'ca.pem'), 'an authority');
  settings['urls.ca'] = join(dir, 'ca.pem');
  writeFileSync(join(dir, 'logins'), 'machine there login me password secret\n', { mode: 0o600 });
  settings['urls.netrc'] = join(dir, 'logins');
  expect(await access.optionsFor(url, undefined)).toEqual({
    ca: 'an authority',
    login: { user: 'me', password: 'secret' },
  });
  rmSync(dir, { recursive: true });
});
