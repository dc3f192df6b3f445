import { afterAll, beforeAll, expect, it } from 'vitest';
import { type SmtpSink, startSmtp } from '../sites/smtp.ts';
import { TestAgent, until } from './agent.ts';

let agent: TestAgent;
let smtp: SmtpSink;
beforeAll(async () => {
  smtp = await startSmtp();
  agent = new TestAgent();
  agent.config(
    [
      '[notify]',
      'email = "me@example.org"',
      'from = "gryphus@example.org"',
      'method = "smtp"',
      'digest = "1s"',
      'problems = false',
      '[notify.smtp]',
      'host = "127.0.0.1"',
      `port = ${smtp.port}`,
      'security = "none"',
      '',
    ].join('\n'),
  );
  await agent.ok('up');
}, 60_000);
afterAll(async () => {
  await agent.end();
  await smtp.stop();
}, 60_000);

/** The text of a mail: its body without the transport's line folding. */
function textOf(raw: string): string {
  const [head = '', ...rest] = raw.split('\r\n\r\n');
  const body = rest.join('\n\n').replaceAll('\r\n', '\n');
  if (!/^content-transfer-encoding: quoted-printable/im.test(head)) return body;
  const bytes = body
    .replaceAll('=\n', '')
    .replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1').toString();
}

it('tells by mail of the completions that were asked for, and of no others', async () => {
  const submit = (script: string, more: string) =>
    agent.submit(`executable = /bin/sh\narguments = "-c '${script}'"\n${more}\nqueue\n`);
  const silent = await submit('exit 0', '');
  const fine = await submit('exit 0', 'notification = Error');
  const complete = await submit('exit 3', 'notification = Complete');
  const failed = await submit('kill -9 $$', 'notification = Error\nnotify_user = you@example.org');
  await agent.ok('wait', '--no-outcome', '--timeout', '100', ...[silent, fine, complete, failed].map(String));
  const to = (who: string) => smtp.mails.filter((mail) => mail.to.includes(who));
  await until('both mails', () => (to('me@example.org').length > 0 && to('you@example.org').length > 0) || undefined);

  const [mine, ...more] = to('me@example.org');
  expect(more).toEqual([]);
  expect(mine?.from).toBe('gryphus@example.org');
  expect(mine?.raw).toMatch(new RegExp(`^Subject: .*\\b${complete}\\.0\\b`, 'm'));
  const text = textOf(mine?.raw ?? '');
  expect(text).toContain(`${complete}.0`);
  expect(text).toContain('/bin/sh');
  expect(text).toContain('ended with status 3');
  const yours = textOf(to('you@example.org')[0]?.raw ?? '');
  expect(yours).toContain(`${failed}.0`);
  expect(yours).toMatch(/signal 9/);
  for (const cluster of [silent, fine])
    expect(smtp.mails.some(({ raw }) => textOf(raw).includes(`${cluster}.0`))).toBe(false);
}, 150_000);

it('makes one mail of many', async () => {
  const before = smtp.mails.length;
  const cluster = await agent.submit('executable = /bin/true\nnotification = Complete\nqueue 30\n');
  await agent.ok('wait', '--no-outcome', '--timeout', '100', String(cluster));
  const texts = () => smtp.mails.slice(before).map(({ raw }) => textOf(raw));
  const told = () => new Set(texts().flatMap((text) => text.match(new RegExp(`\\b${cluster}\\.\\d+\\b`, 'g')) ?? []));
  // Of jobs that ended alike, the first 20 are named.
  const unnamed = () =>
    texts().flatMap((text) => [...text.matchAll(/ and (\d+) more\)/g)].map(([, count]) => Number(count)));
  await until('all 30', () => unnamed().reduce((sum, one) => sum + one, told().size) === 30 || undefined);
  expect(texts().length).toBeLessThan(15);
}, 150_000);
