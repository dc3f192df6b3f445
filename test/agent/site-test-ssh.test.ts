import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Gryphus } from '../../src/client/gryphus.ts';
import { codesMissing, type OneTimeCodes, oneTimeCodes } from '../sites/one-time-codes.ts';
import { type Sshd, startSshd } from '../sites/sshd.ts';
import { SLOW } from '../slow.ts';
import { TestAgent, until } from './agent.ts';

describe.skipIf(codesMissing() !== undefined).each(SLOW ? (['ssh2', 'openssh'] as const) : (['ssh2'] as const))(
  'site test where each log-in needs a one-time code, by %s',
  (transport) => {
    let agent: TestAgent;
    let codes: OneTimeCodes;
    let sshd: Sshd;
    let gryphus: Gryphus;

    beforeAll(async () => {
      codes = oneTimeCodes();
      sshd = await startSshd(codes.options);
      agent = new TestAgent({ HOME: sshd.clientHome });
      agent.site('codes', { url: sshd.url, batch: 'fork', more: `transport = "${transport}"\n` });
      await agent.ok('up');
      gryphus = await Gryphus.open({ home: agent.home, start: false });
    }, 60_000);
    afterAll(async () => {
      await gryphus.close();
      await agent.end();
      await sshd.stop();
      codes.remove();
    });

    const asked = () => sshd.log().split('Postponed keyboard-interactive').length;
    const steps = (text: string) => text.split('\n').map((line) => line.trim());

    it('says to log in while nobody has', async () => {
      const { code, stdout } = await agent.run(['site', 'test', 'codes']);
      expect(code).toBe(1);
      expect(stdout).toContain('Log in once, for jobs and for this test: gryphus site login codes.');
    }, 60_000);

    it('runs whole over the connection that somebody logged in on, and leaves it open', async () => {
      await gryphus.login('codes', async () => codes.next());
      expect(codes.next()).toBe('code-1');
      const { code, stdout } = await agent.run(['site', 'test', 'codes']);
      expect(stdout).toContain(', through the log-in that its jobs use');
      expect(steps(stdout).filter((line) => line.includes('a job'))).toHaveLength(1);
      expect(code).toBe(0);
      const there = join(sshd.home, '.gryphus/codes');
      const jobs = readdirSync(there, { recursive: true, encoding: 'utf8' }).filter((name) =>
        /jobs\/[^/]+$/.test(name),
      );
      expect(jobs).toEqual([]);
      // The connection serves jobs without a second code.
      const cluster = await agent.submit(
        'universe = grid\ngrid_resource = batch fork codes\nexecutable = /bin/true\ntransfer_executable = false\nqueue\n',
      );
      await agent.ok('wait', '--no-outcome', String(cluster), '--timeout', '60');
      expect(codes.next()).toBe('code-1');
      expect(asked()).toBeGreaterThan(1);
    }, 120_000);

    it('says to log in again when that connection is lost', async () => {
      sshd.killSessions();
      await until('the loss', async () => {
        const { code, stdout } = await agent.run(['site', 'test', 'codes']);
        return code === 1 && stdout.includes('gryphus site login codes') ? true : undefined;
      });
    }, 120_000);
  },
);
