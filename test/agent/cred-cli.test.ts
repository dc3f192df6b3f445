import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type GridCa, makeGridCa, type Person } from '../sites/grid-ca.ts';
import { type SmtpSink, startSmtp } from '../sites/smtp.ts';
import { TestAgent, until } from './agent.ts';

const dir = mkdtempSync('/tmp/gcc-');
/** A name that must be quoted in a shell. */
const proxy = join(dir, "jane's $(proxy).pem");
let ca: GridCa;
let jane: Person;
let smtp: SmtpSink;
let agent: TestAgent;

beforeAll(async () => {
  ca = makeGridCa();
  jane = ca.person('Jane Roe');
  smtp = await startSmtp();
  agent = new TestAgent({ X509_CERT_DIR: ca.trust, X509_USER_PROXY: proxy });
  mkdirSync(join(agent.home, 'credentials'), { mode: 0o700 });
}, 30_000);

afterAll(async () => {
  await agent.end();
  await smtp.stop();
  ca.stop();
  rmSync(dir, { recursive: true, force: true });
});

const describeCredential = (name: string, text: string) =>
  writeFileSync(join(agent.home, 'credentials', `${name}.toml`), text);
const clear = (name: string) => rmSync(join(agent.home, 'credentials', `${name}.toml`));

describe('gryphus cred proxy', () => {
  it('makes one as grid-proxy-init does, shows it, destroys it', async () => {
    const said = await agent.ok('cred', 'proxy', 'init', '--cert', jane.cert, '--key', jane.key, '--verify');
    expect(said).toContain(`identity  : ${jane.dn}`);
    expect(statSync(proxy).mode & 0o777).toBe(0o600);
    const info = JSON.parse(await agent.ok('cred', 'proxy', 'info', '--json')) as Record<string, number>;
    expect(info).toMatchObject({ identity: jane.dn, kind: 'proxy', bits: 2048, file: proxy });
    expect((info['end'] ?? 0) - Date.now() / 1000).toBeGreaterThan(11.9 * 3600);
    expect(await agent.ok('cred', 'proxy', 'destroy')).toContain(proxy);
    expect(existsSync(proxy)).toBe(false);
  });

  it.each([
    [
      'a key that is not there',
      ['init', '--cert', 'CERT', '--key', '/nowhere/key.pem'],
      1,
      'There is no key /nowhere/key.pem',
    ],
    ['no proxy to show', ['info'], 1, 'There is no proxy'],
    ['no proxy to destroy', ['destroy'], 1, 'There is no proxy'],
    ['hours that are none', ['init', '--hours', 'soon'], 2, "'soon' is not a number of hours"],
    ['what is no proxy to destroy', ['destroy', '--out', 'CERT'], 77, 'is not a proxy, so it was not deleted'],
    ['a proxy over its certificate', ['init', '--cert', 'CERT', '--out', 'CERT'], 2, 'would overwrite'],
    ['another action', ['renew'], 2, 'init, info, destroy'],
  ])('says what is wrong with %s', async (_, args, code, message) => {
    const ran = await agent.run(['cred', 'proxy', ...args.map((one) => (one === 'CERT' ? jane.cert : one))]);
    expect(ran.stderr).toContain(message);
    expect(ran).toMatchObject({ code, stdout: '' });
  });

  it('refuses a key that others can read, and says what to type', async () => {
    chmodSync(jane.key, 0o640);
    const ran = await agent.run(['cred', 'proxy', 'init', '--cert', jane.cert, '--key', jane.key]);
    chmodSync(jane.key, 0o600);
    expect(ran.code).toBe(77);
    expect(ran.stderr).toMatch(/chmod 600 /);
  });

  it('asks for the passphrase of an encrypted key, and gets no answer', async () => {
    const locked = ca.person('Locked', { passphrase: 'open sesame' });
    const ran = await agent.run(['cred', 'proxy', 'init', '--cert', locked.cert, '--key', locked.key], {
      input: 'open sesame\n',
    });
    expect(ran.code).toBe(77);
    expect(ran.stderr).toContain('no terminal to prompt for its passphrase');
  });
});

describe('gryphus submit with a proxy', () => {
  const job = `executable = /bin/true\nx509userproxy = ${join(dir, 'short.pem')}\nqueue\n`;

  it.each([
    ['too short', '0.02', 'lifetime too short'],
    ['none at all', undefined, 'unable to read proxy file'],
  ])('refuses one that is %s', async (_, hours, message) => {
    rmSync(join(dir, 'short.pem'), { force: true });
    if (hours !== undefined)
      await agent.ok(
        'cred',
        'proxy',
        'init',
        '--cert',
        jane.cert,
        '--key',
        jane.key,
        '--out',
        join(dir, 'short.pem'),
        '--hours',
        hours,
      );
    agent.file('job.sub', job);
    const ran = await agent.run(['submit', 'job.sub']);
    expect(ran.code).not.toBe(0);
    expect(ran.stderr).toContain(message);
    expect(ran.stderr).toContain('gryphus cred proxy init');
  });
});

describe('gryphus cred list and renew', () => {
  it('shows what is described, the first end at the top, and what to type', async () => {
    describeCredential('hours', 'kind = "allocation"\nuntil = 2020-01-31\n');
    describeCredential('jane', `kind = "x509-proxy"\nfile = ${JSON.stringify(proxy)}\n`);
    const text = await agent.ok('cred', 'list');
    expect(text).toMatch(/^NAME +KIND +FUEL +LEFT/);
    expect(text).toMatch(/hours +allocation +\[-+\] +ended/);
    expect(text).toContain(`gryphus cred proxy init --out '${proxy.replace("'", "'\\''")}'`);
    const all = JSON.parse(await agent.ok('cred', 'list', '--json')) as Record<string, unknown>[];
    expect(all[0]).toMatchObject({ name: 'hours', state: 'ended', end: Date.UTC(2020, 1, 1) / 1000 });
    clear('hours');
    clear('jane');
  });

  it.each([
    ['an unknown key', 'kind = "ssh-key"\nfiles = "/x"\n', "line 2: unknown key 'files'"],
    ['no kind', 'file = "/x"\n', "'kind' is missing"],
    ['a relative file', 'kind = "ssh-key"\nfile = "x"\n', 'an absolute path'],
    ['an allocation for ever', 'kind = "allocation"\n', "'until' is missing"],
    ['two ways to renew', 'kind = "x509-proxy"\nfile = "/x"\nrenew_command = "x"\nmyproxy.host = "h"\n', 'choose one'],
    ['a certificate that is none', 'kind = "ssh-certificate"\nfile = "/x/id_ed25519"\n', '-cert.pub'],
  ])('names the file and the remedy of %s', async (_, text, message) => {
    describeCredential('wrong', text);
    const ran = await agent.run(['cred', 'renew', 'wrong']);
    expect(ran.stderr).toContain(join(agent.home, 'credentials/wrong.toml'));
    expect(ran.stderr).toContain(message);
    expect(ran.code).toBe(78);
    // An invalid one does not hide the others.
    expect(await agent.ok('cred', 'list')).toContain('wrong');
    clear('wrong');
  });

  it('renews by command; the file decides, and nothing of what it printed is shown', async () => {
    const key = join(dir, 'key');
    const command = `echo Planted-5521; [ -e ${dir}/may ] && umask 077 && echo new >${key}.new && mv ${key}.new ${key}`;
    writeFileSync(key, 'old\n', { mode: 0o600 });
    describeCredential('daily', `kind = "ssh-key"\nfile = "${key}"\nlifetime = "24h"\nrenew_command = "${command}"\n`);
    const failed = await agent.run(['cred', 'renew', 'daily']);
    expect(failed.stderr).toContain('The renew_command exited with status 1; run it by hand to see why.');
    expect(failed.code).toBe(77);
    writeFileSync(join(dir, 'may'), '');
    await until('the next second', () => Date.now() - statSync(key).mtimeMs > 1100 || undefined);
    const good = await agent.run(['cred', 'renew', 'daily']);
    expect(good.stdout).toContain("The SSH key 'daily' is fresh, until ");
    expect(`${failed.stdout}${failed.stderr}${good.stdout}${good.stderr}`).not.toContain('Planted');
    expect((await agent.run(['cred', 'renew', 'nosuch'])).stderr).toContain("There is no credential 'nosuch'");
    clear('daily');
  });
});

describe('gryphus alarm test', () => {
  it('says how to be reached where no way is set', async () => {
    const ran = await agent.run(['alarm', 'test']);
    expect(ran.code).toBe(78);
    expect(ran.stderr).toContain('gryphus config notify.email');
  });

  it('tries every way that is set, and says which fails', async () => {
    agent.config(
      `[notify]\nemail = "jane@example.org"\nmethod = "smtp"\nsmtp.host = "127.0.0.1"\nsmtp.port = ${smtp.port}\nsmtp.security = "none"\n[alarms]\nhook = '''cat >${dir}/heard'''\n`,
    );
    const good = await agent.run(['alarm', 'test', '--json']);
    expect(good.code).toBe(0);
    expect(JSON.parse(good.stdout)).toMatchObject([
      { step: 'mail', ok: true },
      { step: 'hook', ok: true },
    ]);
    expect(smtp.mails.map((mail) => mail.to)).toEqual([['jane@example.org']]);
    expect(readFileSync(join(dir, 'heard'), 'utf8')).toContain('This is the test that you asked for');
    agent.config(`alarms.hook = "exit 3"\n`);
    const bad = await agent.run(['alarm', 'test']);
    expect(bad.code).toBe(1);
    expect(bad.stdout).toContain('The alarm command exited with status 3.');
  });
});
