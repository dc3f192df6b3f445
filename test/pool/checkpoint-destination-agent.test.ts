import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseUserLog } from '../../src/user-log/text.ts';
import { until } from '../agent/agent.ts';
import { type Ftpd, skipWithoutFtpd, startFtpd } from '../sites/ftpd.ts';
import { WebDav } from '../sites/webdav.ts';
import { quickPool } from './quick-pool.ts';

const HELPER = join(
  import.meta.dirname,
  '../..',
  process.env['GRYPHUS_DIST'] ?? 'dist',
  `native/${process.arch}/gryphus-helper`,
);

/** It counts until it is over, and does not know that it is moved. */
const COUNTER = `#!/bin/sh
echo start >>"$1"
n=0
while [ ! -e "$1.over" ]; do n=$((n + 1)); echo $n; echo $n >"$1.at"; sleep 0.02; done
echo "ended at $n"
`;

/** All files below a directory. */
function below(directory: string): string[] {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  return entries.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name));
}

describe('checkpoint_destination', () => {
  const agent = quickPool(COUNTER);
  let dav: WebDav;
  beforeAll(async () => {
    dav = await new WebDav().start();
  });
  afterAll(() => dav.stop());

  const evictions = (log: string) =>
    existsSync(join(agent.work, log)) ? parseUserLog(agent.read(log)).events.filter((e) => e.type === 'evicted') : [];

  describe.skipIf(!existsSync(HELPER) || skipWithoutFtpd())('with want_checkpoint', () => {
    let ftpd: Ftpd;
    beforeAll(async () => {
      ftpd = await startFtpd({ tls: true });
    }, 60_000);
    afterAll(() => ftpd.stop());

    it('stores each image there, goes on from it, and leaves nothing there at the end', async () => {
      // The server's own file goes with it.
      const ca = agent.file('ca.pem', readFileSync(ftpd.ca, 'utf8'));
      agent.config(`[pool]\ncpus = 2\n[gridmanager]\nrestart_max = "100ms"\nretry_max = "1s"\n[urls]\nca = "${ca}"\n`);
      writeFileSync(
        join(agent.env['GRYPHUS_CONFIG'] ?? agent.home, 'netrc'),
        `machine localhost login ${ftpd.user} password "${ftpd.password}"\n`,
        { mode: 0o600 },
      );
      const ledger = join(agent.work, 'there.ledger');
      const cluster = await agent.submit(
        `executable = counter.sh\narguments = ${ledger}\nwant_checkpoint = true\noutput = there.out\nlog = there.log\n` +
          `checkpoint_destination = ftps://localhost:${ftpd.port}/kept images\nqueue\n`,
      );
      const at = () => (existsSync(`${ledger}.at`) ? Number(readFileSync(`${ledger}.at`, 'utf8')) : 0);
      for (let times = 1; times <= 2; times++) {
        const before = at();
        await until('it to count', () => at() > before + 10 || undefined, 60_000);
        await agent.ok('vacate', String(cluster));
        await until('its eviction', () => evictions('there.log').length === times || undefined, 60_000);
        const manifest = await until(
          'its list',
          () => below(ftpd.files).find((path) => path.includes('MANIFEST')),
          60_000,
        );
        expect(manifest).toContain(`/000${times - 1}/MANIFEST.000${times - 1}`);
        execFileSync('sha256sum', ['-c', '--quiet', manifest], { cwd: join(manifest, '..') });
      }
      const before = at();
      await until('it to go on', () => at() > before + 10 || undefined, 60_000);
      writeFileSync(`${ledger}.over`, '');
      await agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster));
      expect(readFileSync(ledger, 'utf8')).toBe('start\n');
      const lines = Array.from({ length: at() }, (_, n) => `${n + 1}\n`).join('');
      expect(agent.read('there.out')).toBe(`${lines}ended at ${at()}\n`);
      await until('nothing to be there', () => below(ftpd.files).length === 0 || undefined, 30_000);
      expect(readdirSync(join(ftpd.files, 'kept images'))).toEqual([]);
    }, 240_000);
  });

  /** It saves its work and exits with 85 three times. */
  const SAVER = `#!/bin/sh
n=0; [ -e state/n ] && n=$(cat state/n)
echo "from $n"; n=$((n + 1)); mkdir -p state; echo $n >state/n
[ $n -lt 4 ] && exit 85
cp state/n result
`;
  const saver = (log: string) =>
    `executable = saver.sh\ncheckpoint_exit_code = 85\ntransfer_checkpoint_files = state\noutput = ${log}.out\nlog = ${log}.log\n` +
    `should_transfer_files = YES\ntransfer_output_files = result\ncheckpoint_destination = ${dav.url}/a/b c\nqueue\n`;

  it('holds for programs that save themselves, and makes the directories that are not there', async () => {
    agent.file('saver.sh', SAVER, 0o755);
    const cluster = await agent.submit(saver('self'));
    await agent.ok('wait', '--no-outcome', '--timeout', '90', String(cluster));
    expect(agent.read('self.out')).toBe('from 0\nfrom 1\nfrom 2\nfrom 3\n');
    expect(dav.asked.filter((line) => /^PUT .*MANIFEST/.test(line)).map((line) => line.slice(-13))).toEqual([
      'MANIFEST.0000',
      'MANIFEST.0001',
      'MANIFEST.0002',
    ]);
    // The list is stored last, and goes first.
    const about = dav.asked
      .filter((line) => /^(PUT|DELETE) .*0001/.test(line))
      .map((line) => line.replace(/ .*\//, ' '));
    expect(about.filter((line) => line.startsWith('PUT')).at(-1)).toBe('PUT MANIFEST.0001');
    expect(about.find((line) => line.startsWith('DELETE'))).toBe('DELETE MANIFEST.0001');
    await until('nothing to be there', () => below(dav.files).length === 0 || undefined, 30_000);
  }, 120_000);

  it('says what is wrong with a checkpoint that was changed there, and starts nothing from it', async () => {
    agent.file('waits.sh', '#!/bin/sh\n[ -e state ] || { echo 1 >state; exit 85; }\necho went on\n', 0o755);
    dav.spoil = (path) => path.endsWith('/state') && writeFileSync(path, '2\n');
    const cluster = await agent.submit(
      `executable = waits.sh\ncheckpoint_exit_code = 85\ntransfer_checkpoint_files = state\nshould_transfer_files = YES\noutput = w.out\n` +
        `log = w.log\ncheckpoint_destination = ${dav.url}/w\nqueue\n`,
    );
    const reason = await until('it to be held', async () => (await agent.ads(cluster))[0]?.['HoldReason'], 60_000);
    expect(reason).toContain('is not what was stored there');
    dav.spoil = () => undefined;
    expect(existsSync(join(agent.work, 'w.out')) && agent.read('w.out').includes('went on')).toBe(false);
    await agent.ok('rm', String(cluster));
  }, 120_000);

  it.each([
    ['nowhere', 'checkpoint_destination: The URL nowhere cannot be read'],
    ['s3://bucket/x', "checkpoint_destination: The URL s3://bucket/x has the scheme 's3', which cannot be fetched"],
    ['ftp://me:secret@host/x', 'checkpoint_destination: The URL ftp://host/x contains a log-in'],
  ])('is refused in one sentence if it is %s', async (url, said) => {
    const input = `executable = /bin/true\ncheckpoint_exit_code = 85\ncheckpoint_destination = ${url}\nqueue\n`;
    const { code, stderr } = await agent.run(['submit', '-'], { input });
    expect(code).not.toBe(0);
    expect(stderr).toContain(said);
    expect(stderr).not.toContain('secret');
  });
});
