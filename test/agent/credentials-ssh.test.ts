import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CaughtMail, type SmtpSink, startSmtp } from '../sites/smtp.ts';
import { makeKey, signKey } from '../sites/ssh-keys.ts';
import { type Sshd, startSshd } from '../sites/sshd.ts';
import { SLOW } from '../slow.ts';
import { TestAgent, until } from './agent.ts';
import { filesBelow, findSecrets } from './secret-scan.ts';

/** Lifetime of a certificate here, in seconds; at a real site it is a day. */
const LIFE = SLOW ? 120 : 16;
const SECRETS = {
  'the mail password': 'Planted-Mail-Password-7391',
  'what a renewal prints': 'Planted-Renewal-Output-5520',
};

const dir = mkdtempSync('/tmp/gcs-');
const allow = join(dir, 'allow');
const hooked = join(dir, 'hooked');
let sshd: Sshd;
let smtp: SmtpSink;
let agent: TestAgent;
let key: string;
/** Signs the key again, as a person would by hand. */
let certify: (seconds: number) => void;

beforeAll(async () => {
  const ca = makeKey(dir, 'user_ca');
  key = makeKey(dir, 'id_site');
  sshd = await startSshd({ config: [`TrustedUserCAKeys ${ca}.pub`] });
  // Only the certificate grants access.
  writeFileSync(join(sshd.configDir, 'authorized_keys'), '');
  smtp = await startSmtp({ login: { user: 'jane', password: SECRETS['the mail password'] } });
  writeFileSync(join(dir, 'ca.pem'), smtp.ca);
  writeFileSync(join(dir, 'password'), `${SECRETS['the mail password']}\n`, { mode: 0o600 });
  const renew = join(dir, 'renew.sh');
  writeFileSync(
    renew,
    `#!/bin/sh
printf '%s%s\\n' Planted-Renewal- Output-5520
printf '%s%s\\n' Planted-Renewal- Output-5520 >&2
[ -e ${allow} ] || exit 3
cp ${key}.pub ${dir}/new.pub
ssh-keygen -q -s ${ca} -I test -n ${sshd.user} -V -1s:+${LIFE}s ${dir}/new.pub
mv ${dir}/new-cert.pub ${key}-cert.pub
`,
    { mode: 0o755 },
  );
  certify = (seconds) => void signKey({ ca, key, principals: [sshd.user], validity: `-1s:+${seconds}s` });
  certify(3600);
  agent = new TestAgent({ HOME: sshd.clientHome, SSH_AUTH_SOCK: undefined });
  agent.config(`[notify]
email = "jane@example.org"
method = "smtp"
smtp.host = "127.0.0.1"
smtp.port = ${smtp.port}
smtp.user = "jane"
smtp.password_file = "${join(dir, 'password')}"
smtp.ca = "${join(dir, 'ca.pem')}"
[alarms]
hold_before_end = "2s"
hook = '''{ echo "$GRYPHUS_KIND $GRYPHUS_SUBJECT"; cat; } >>${hooked}'''
`);
  agent.site('cluster', { url: sshd.url, batch: 'fork', more: 'credential = "cluster-key"\n[limits]\nqueued = 1\n' });
  mkdirSync(join(agent.home, 'credentials'), { mode: 0o700 });
  writeFileSync(
    join(agent.home, 'credentials/cluster-key.toml'),
    `kind = "ssh-certificate"\nfile = "${key}-cert.pub"\nrenew_command = "${renew}"\n`,
  );
}, 60_000);

afterAll(async () => {
  await agent?.end();
  await smtp?.stop();
  await sshd?.stop();
  rmSync(dir, { recursive: true, force: true });
});

const LEDGER = 'echo "$1" >>"$HOME/ledger"';
const description = (name: string) => `universe = grid
grid_resource = batch fork cluster
executable = ${name}.sh
arguments = ${name}
log = ${name}.log
queue
`;
const one = async (cluster: number) => (await agent.ads(cluster))[0] ?? {};
const about = (mails: readonly CaughtMail[], message: string) =>
  mails.filter((mail) => /^Subject: .*(?:\r\n[ \t].*)*/m.exec(mail.raw)?.[0].replaceAll(/\r\n/g, '').includes(message));

describe('jobs at a site whose SSH certificate ends', () => {
  it(
    'are carried over three ends: held, told of, released, run once',
    async () => {
      agent.file('runs.sh', `#!/bin/sh\n${LEDGER}\nwhile ! [ -e "$HOME/stop" ]; do sleep 0.2; done\n`, 0o755);
      agent.file('waits.sh', `#!/bin/sh\n${LEDGER}\n`, 0o755);
      const runs = await agent.submit(description('runs'));
      await until('the first job to run', async () => (await one(runs))['JobStatus'] === 2 || undefined);
      const waits = await agent.submit(description('waits'));
      for (let end = 1; end <= 3; end++) {
        rmSync(allow, { force: true });
        certify(LIFE);
        const held = await until(
          `hold ${end}`,
          async () => {
            const ad = await one(waits);
            return ad['JobStatus'] === 5 ? ad : undefined;
          },
          (LIFE + 30) * 1000,
        );
        expect(held).toMatchObject({ HoldReasonCode: 4, HoldReasonSubCode: 1, NumHolds: end });
        expect(held['HoldReason']).toContain("The SSH certificate 'cluster-key' end");
        // The site would refuse a log-in now; jobs running there continue.
        await until('the end itself', () => Date.now() / 1000 > certificateEnd() || undefined, 10_000);
        sshd.killSessions();
        expect((await one(runs))['JobStatus']).toBe(2);
        await until(`mail ${end}`, () => about(smtp.mails, 'has ended').length === end || undefined);
        writeFileSync(allow, '');
        await until(`release ${end}`, async () => (await one(waits))['JobStatus'] === 1 || undefined);
        await until(`good news ${end}`, () => about(smtp.mails, 'is fresh again').length === end || undefined);
      }
      certify(3600);
      writeFileSync(join(sshd.home, 'stop'), '');
      await agent.ok('wait', '--no-outcome', String(runs), String(waits));
      expect(readFileSync(join(sshd.home, 'ledger'), 'utf8')).toBe('runs\nwaits\n');
      expect(await one(runs)).toMatchObject({ JobStatus: 4, ExitCode: 0, NumJobStarts: 1 });
      expect((await one(runs))['NumHolds'] ?? 0).toBe(0);
      expect(await one(waits)).toMatchObject({ JobStatus: 4, ExitCode: 0, NumJobStarts: 1, NumHolds: 3 });
    },
    (LIFE * 3 + 240) * 1000,
  );

  it('are reported once for each end, by mail over TLS and by the hook', () => {
    expect(smtp.mails.every((mail) => mail.tls && mail.user === 'jane')).toBe(true);
    const subjects = smtp.mails.map(
      (mail) => `${/^Subject: (.*)/m.exec(mail.raw)?.[1]} ${/\d\d:\d\d UTC/.exec(mail.raw)?.[0]}`,
    );
    expect(about(smtp.mails, 'has ended')).toHaveLength(3);
    expect(about(smtp.mails, 'is fresh again')).toHaveLength(3);
    expect(about(smtp.mails, 'has ended')[0]?.raw).toContain('gryphus cred renew cluster-key');
    expect(subjects.length).toBeLessThanOrEqual(12);
    expect(readFileSync(hooked, 'utf8').match(/^credential .*has ended/gm)).toHaveLength(3);
  });

  it('are at a site that is tested with its own key, once that is renewed by hand', async () => {
    certify(1);
    expect(await agent.ok('cred', 'renew', 'cluster-key')).toContain("The SSH certificate 'cluster-key' is fresh");
    expect(await agent.ok('cred', 'list')).toMatch(/cluster-key +SSH certificate +\[#/);
    const steps = (await agent.ok('site', 'test', 'cluster', '--jsonl')).trim().split('\n');
    expect(steps.map((line) => (JSON.parse(line) as { ok: boolean }).ok)).not.toContain(false);
  }, 60_000);

  it('leave no secret anywhere', () => {
    const line = readFileSync(key, 'utf8').split('\n')[4] ?? '';
    expect(line.length).toBeGreaterThan(40);
    const secrets = { ...SECRETS, 'the private key': line };
    // The queue's file exists and is not compressed, so a secret that is not found in it is not in it.
    const files = filesBelow(join(agent.home, 'state'));
    expect(files.some((file) => file.includes('/redis/') && readFileSync(file).includes('cluster-key'))).toBe(true);
    expect(findSecrets(secrets, [agent.home, sshd.home])).toEqual([]);
    // They are found where they belong.
    expect(findSecrets(secrets, [dir])).toEqual(
      expect.arrayContaining([`the mail password: ${join(dir, 'password')}`, `the private key: ${key}`]),
    );
    expect(existsSync(join(sshd.home, 'id_site'))).toBe(false);
  });
});

function certificateEnd(): number {
  const blob = Buffer.from(readFileSync(`${key}-cert.pub`, 'utf8').split(' ')[1] ?? '', 'base64');
  let at = 0;
  const string = () => {
    const length = blob.readUInt32BE(at);
    at += 4 + length;
  };
  for (let i = 0; i < 3; i++) string(); // type, nonce, key
  at += 12; // serial, kind
  for (let i = 0; i < 2; i++) string(); // id, principals
  return Number(blob.readBigUInt64BE(at + 8));
}
