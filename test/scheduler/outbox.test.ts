import { afterAll, beforeAll, expect, it } from 'vitest';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadSettings } from '../../src/config/settings.ts';
import { loadPaths } from '../../src/config/paths.ts';
import { jobHeld, testMessage } from '../../src/notify/messages.ts';
import type { Queue } from '../../src/queue/api.ts';
import { UNSENT_MAIL, WAITING_MAIL, WHOLE } from '../../src/queue/tables.ts';
import { Outbox } from '../../src/scheduler/outbox.ts';
import { procs } from '../queue/all.ts';
import { startRedis, type TestRedis, until } from '../sites/redis.ts';
import { type SmtpSink, startSmtp } from '../sites/smtp.ts';

let redis: TestRedis;
let queue: Queue;
let smtp: SmtpSink;
let outbox: Outbox;
/** To the next recipients, in place of a welcome. */
const answers: { readonly responseCode: number; readonly message: string }[] = [];
const home = mkdtempSync('/tmp/gry-outbox-');
beforeAll(async () => {
  redis = await startRedis();
  queue = await redis.open();
  smtp = await startSmtp({
    onRcptTo(_address, _session, done) {
      const answer = answers.shift();
      done(answer === undefined ? null : Object.assign(new Error(answer.message), answer));
    },
  });
});
afterAll(async () => {
  await redis.stop();
  await smtp.stop();
  rmSync(home, { recursive: true });
});

it('sends no hold that is over, and of a job that is held again only the last', async () => {
  const { cluster } = await queue.submit({ clusterAd: { Owner: '"me"' }, procs: procs(4), manager: 'm', site: 's' });
  const ids = [0, 1, 2, 3].map((proc) => ({ cluster, proc }));
  const held = (proc: number, since: number, reason: string) => {
    const message = jobHeld({ id: { cluster, proc }, since, command: 'c', code: 1, reason, suggestions: [] });
    return WAITING_MAIL.set(queue.kv, `me@x ${message.key}`, { to: 'me@x', message, since });
  };
  await queue.transitionMany(ids.map((id) => ({ id, event: 'hold' })));
  for (const proc of [0, 1, 2, 3]) await held(proc, 10, `reason ${proc}`);
  await held(3, 20, 'another reason');
  await queue.transitionMany([
    { id: { cluster, proc: 1 }, event: 'release' },
    { id: { cluster, proc: 2 }, event: 'remove' },
  ]);
  writeFileSync(
    join(home, 'config.toml'),
    `[notify]\nemail = "me@x"\nfrom = "g@x"\nmethod = "smtp"\n[notify.smtp]\nhost = "127.0.0.1"\nport = ${smtp.port}\nsecurity = "none"\n`,
    { mode: 0o600 },
  );
  const settings = await loadSettings(loadPaths({ ...process.env, GRYPHUS_HOME: home }));
  outbox = await Outbox.open({ queue, settings, log: () => undefined });
  await until(() => smtp.mails.length > 0);
  const [mail, ...more] = smtp.mails.map(({ raw }) => raw.replaceAll('=\r\n', ''));
  expect(more).toEqual([]);
  expect(mail?.match(/reason \d|another reason/g)?.sort()).toEqual(
    expect.arrayContaining(['another reason', 'reason 0']),
  );
  expect(mail).not.toMatch(/reason [123]/);
  await until(async () => (await WAITING_MAIL.list(queue.kv)).length === 0);
});

it('keeps mail for a server that is away, and publishes why; what is refused for good is published as lost', async () => {
  smtp.mails.length = 0;
  answers.push({ responseCode: 450, message: 'full' }, { responseCode: 550, message: 'no such user' });
  const put = (subject: string) => {
    const message = testMessage(subject, 0);
    return outbox.put([{ to: 'me@x', message: { ...message, key: subject }, since: 0 }]);
  };
  await put('kept');
  await until(async () => (await UNSENT_MAIL.get(queue.kv, WHOLE)) !== undefined);
  expect(await UNSENT_MAIL.get(queue.kv, WHOLE)).toMatchObject({ lost: false, error: expect.stringContaining('full') });
  await put('lost');
  await until(async () => (await UNSENT_MAIL.get(queue.kv, WHOLE))?.lost === true);
  expect(await UNSENT_MAIL.get(queue.kv, WHOLE)).toMatchObject({ error: expect.stringContaining('no such user') });
  // The first is tried again after 5 s.
  await until(() => smtp.mails.length > 0);
  expect(smtp.mails[0]?.raw).toContain('kept');
  await until(async () => (await UNSENT_MAIL.get(queue.kv, WHOLE)) === undefined);
}, 30_000);
