import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent } from '../agent/agent.ts';
import { codesMissing, type OneTimeCodes, oneTimeCodes } from '../sites/one-time-codes.ts';
import { ordinaryUser, runsAs } from '../sites/ordinary-user.ts';
import { type Sshd, startSshd } from '../sites/sshd.ts';
import { SLOW } from '../slow.ts';
import { openPage, startBrowser } from './page.ts';

describe.skipIf(!SLOW || codesMissing() !== undefined)('the page and a site that asks for a code', () => {
  let agent: TestAgent;
  let browser: Browser;
  let page: Page;
  let base: string;
  let codes: OneTimeCodes;
  let sshd: Sshd;

  beforeAll(async () => {
    codes = oneTimeCodes();
    sshd = await startSshd(codes.options);
    agent = new TestAgent({ HOME: sshd.clientHome });
    agent.site('codes', { url: sshd.url, batch: 'fork' });
    browser = await startBrowser();
    await agent.ok('up');
    ({ page, base } = await openPage(agent, await browser.newContext()));
  });
  afterAll(async () => {
    await browser.close();
    await agent.end();
    await sshd.stop();
    codes.remove();
  });

  it('puts the question of the site, refuses a wrong answer, and its job runs after the right one', async () => {
    const grid = 'universe = grid\ngrid_resource = batch fork codes\n';
    const cluster = await agent.submit(`${grid}executable = /bin/true\ntransfer_executable = false\nqueue\n`);
    await page.goto(`${base}/#/sites`);
    const row = page.getByRole('row', { name: 'codes' });
    await row.getByText('needs-login').waitFor({ timeout: 60_000 });
    await row.getByRole('button', { name: 'Log in' }).click();
    const dialog = page.getByRole('dialog');
    const answer = dialog.getByRole('textbox').or(dialog.locator('input[type=password]'));
    await answer.fill('wrong');
    await dialog.getByRole('button', { name: 'Answer' }).click();
    await answer.waitFor();
    // The question is put again, or the log-in begins anew.
    await expect.poll(() => answer.inputValue()).toBe('');
    await answer.fill(codes.next());
    await dialog.getByRole('button', { name: 'Answer' }).click();
    await dialog.getByText('The connection is open.').waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();
    await agent.ok('wait', String(cluster), '--timeout', '60');
    await row.getByText(/^\S up$/).waitFor();
    expect(sshd.log()).toContain('Postponed keyboard-interactive');
  });

  it('keeps no answer: neither in the state nor in the browser', async () => {
    const { stdout } = spawnSync('grep', ['-rl', 'code-0', join(agent.home)], { encoding: 'utf8' });
    expect(stdout).toBe('');
    expect(String(await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }])'))).not.toContain(
      'code-0',
    );
  });

  it('gives another user of the machine nothing', () => {
    const [program, ...words] = runsAs(ordinaryUser());
    const as = (script: string) => spawnSync(program, [...words, 'sh', '-c', script], { encoding: 'utf8' });
    expect(as(`cat '${agent.home}/state/web/token'`)).toMatchObject({ stdout: '', status: 1 });
    for (const path of ['/api/v1/jobs', '/api/v1/session', '/metrics', '/api/v1/stream']) {
      const { stdout } = as(
        `exec "${process.execPath}" -e 'fetch(process.argv[1]).then((a) => console.log(a.status))' '${base}${path}'`,
      );
      expect(stdout.trim(), path).toBe('403');
    }
  });
});

describe.skipIf(!SLOW)('the page on what has run', () => {
  let agent: TestAgent;
  let browser: Browser;
  let page: Page;
  let base: string;

  beforeAll(async () => {
    agent = new TestAgent();
    agent.site('near', { url: 'local', batch: 'fork', more: `scratch = "${agent.dir}/near"\n` });
    browser = await startBrowser();
    await agent.ok('up');
    ({ page, base } = await openPage(agent, await browser.newContext()));
  });
  afterAll(async () => {
    await browser.close();
    await agent.end();
  });

  it('shows how jobs fared at a site, and what their owner used', async () => {
    const grid = 'universe = grid\ngrid_resource = batch fork near\n';
    await agent.submit(`${grid}executable = /bin/sleep\narguments = 1\ntransfer_executable = false\nqueue 3\n`);
    await agent.ok('wait', '1', '--timeout', '60');
    await page.goto(`${base}/#/sites`);
    await page
      .getByRole('row', { name: 'near' })
      .getByText(/^\d+ s, \d+ s$/)
      .waitFor();
    await page.goto(`${base}/#/pool`);
    const used = page.getByRole('region', { name: 'Used', exact: true }).getByRole('row').nth(1);
    expect(await used.getByRole('cell').first().textContent()).toBe('3');
  });

  it('shows the retries of a DAG, its rescue file, and from where it continues', async () => {
    agent.file('fails.sub', 'executable = /bin/false\ntransfer_executable = false\nqueue\n');
    agent.file('r.dag', 'JOB bad fails.sub\nRETRY bad 2\n');
    await agent.run(['dag', 'submit', 'r.dag', '--wait']);
    await page.goto(`${base}/#/dag/2`);
    await page.getByText('Submitted again, it continues from r.dag.rescue001', { exact: false }).waitFor();
    await page.getByText('2 in all.').waitFor();
    const said = await agent.run(['dag', 'status', '2']);
    expect(said.stdout).toContain('Retries (2): bad 2 of 2\n');
    expect(said.stdout).toContain('Submitted again, it continues from r.dag.rescue001.\n');
    agent.file('fails.sub', 'executable = /bin/sleep\narguments = 600\ntransfer_executable = false\nqueue\n');
    await agent.ok('dag', 'submit', 'r.dag');
    await page.goto(`${base}/#/dags`);
    await page.getByRole('row').nth(1).getByRole('link').click();
    await page.getByText('It continues from r.dag.rescue001', { exact: false }).waitFor();
  });
});
