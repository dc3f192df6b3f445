import { request } from 'node:http';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { TestAgent, until } from '../agent/agent.ts';
import { addressOf, keyOf, openPage, startBrowser } from './page.ts';

const HOSTILE = '<img src=x onerror=alert(1)>\u202egnp.exe';
let agent: TestAgent;
let browser: Browser;
let page: Page;
let complaints: string[];
let base: string;

beforeAll(async () => {
  agent = new TestAgent();
  [browser] = await Promise.all([startBrowser(), agent.ok('up')]);
  ({ page, complaints, base } = await openPage(agent, browser));
});
afterAll(async () => {
  await browser.close();
  await agent.end();
});

/** The status of a request with these headers; Node's own client sends any Host and Origin. */
function status(path: string, headers: Record<string, string>, method = 'GET'): Promise<number | undefined> {
  const { hostname, port } = new URL(base);
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, path, method, headers }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    sent.once('error', reject).end();
  });
}

it('shows how to submit a job when there is none', async () => {
  await page.getByText('No job is in the queue').waitFor();
  expect(await page.getByText('gryphus submit first.sub').count()).toBe(1);
});

it('shows a job live, and its hostile name as text', async () => {
  await agent.submit(`executable = /bin/sh
arguments = "-c 'printf ""\\033[31mred\\033[0m <b>bold</b>\\n""; sleep 600'"
batch_name = ${HOSTILE}
transfer_executable = false
output = out
log = log
queue`);
  await page.goto(`${base}/#/jobs`);
  const row = page.locator('tr[data-job="1.0"]');
  await row.getByText('running').waitFor();
  expect(await row.textContent()).toContain('<img src=x onerror=alert(1)>⟨202E⟩gnp.exe');
  expect(await page.locator('main img').count()).toBe(0);
  await row.getByRole('link', { name: '1.0' }).click();
  await page.getByText('red <b>bold</b>').waitFor();
});

it('says what an action will do, and does it', async () => {
  await page.goto(`${base}/#/jobs`);
  await page.getByLabel('Select 1.0').check();
  await page.getByRole('button', { name: 'Hold', exact: true }).click();
  await page.getByText('1 job will be held. What runs of them is stopped at its site.').waitFor();
  await page.getByRole('textbox', { name: 'Reason' }).fill('<script>why</script>');
  await page.getByRole('button', { name: 'Hold 1 job' }).click();
  await page.getByText('1 done.').waitFor();
  await page.getByRole('button', { name: 'Close' }).click();
  await page.locator('tr[data-job="1.0"]').getByText('<script>why</script>').waitFor();
  await page.goto(`${base}/#/`);
  await page.getByText('1 held').waitFor();
});

it('shows the error of a constraint in place', async () => {
  await page.goto(`${base}/#/jobs`);
  const box = page.getByRole('searchbox');
  await box.fill('JobStatus == (5');
  await page.getByRole('alert').waitFor();
  expect(await page.getByRole('alert').textContent()).toMatch(/constraint.*column/i);
  await box.fill('JobStatus == 5');
  await page.getByText('1 of 1 jobs').waitFor();
  await box.fill('state:running');
  await page.getByText('0 of 1 jobs').waitFor();
});

it('gives nothing without the cookie and the key, or to another host or origin', async () => {
  const session = await page.context().cookies();
  const cookie = `gryphus=${session.find(({ name }) => name === 'gryphus')?.value}`;
  const key = await keyOf(page);
  const { host } = new URL(base);
  const good = { host, cookie, 'x-gryphus-key': key };
  expect(session[0]).toMatchObject({ httpOnly: true, sameSite: 'Strict' });
  expect(await status('/api/v1/session', good)).toBe(200);
  const refused: Record<string, string>[] = [
    { host },
    { host, cookie },
    { host, 'x-gryphus-key': key },
    { ...good, cookie: `${cookie}x` },
    { ...good, host: 'evil.example' },
    { ...good, origin: 'http://evil.example' },
    { ...good, origin: 'http://127.0.0.1:1' },
    { ...good, 'sec-fetch-site': 'cross-site' },
    { host, authorization: 'Bearer 0' },
  ];
  for (const headers of refused) {
    expect(await status('/api/v1/session', headers), JSON.stringify(headers)).toBe(403);
    expect(await status('/api/v1/jobs/act', headers, 'POST'), JSON.stringify(headers)).toBe(403);
    expect(await status('/api/v1/stream', headers), JSON.stringify(headers)).toBe(403);
    expect(await status('/metrics', headers), JSON.stringify(headers)).toBe(403);
  }
  expect(await status('/', { host: 'evil.example' })).toBe(403);
});

it('opens with an address once', async () => {
  const { href } = await addressOf(agent);
  const stranger = await browser.newContext();
  const first = await stranger.newPage();
  await first.goto(href);
  await first.getByText('Live').waitFor();
  const other = await (await browser.newContext()).newPage();
  await other.goto(href);
  await other.getByText('This browser is not logged in').waitFor();
  await Promise.all([stranger.close(), other.context().close()]);
});

it('goes on by itself when its server was killed and another is started', async () => {
  await page.goto(`${base}/#/jobs`);
  await page.getByText('Live').waitFor();
  await agent.ok('web', '--stop');
  await page.getByText('The server is away').waitFor();
  await addressOf(agent);
  await page.getByText('Live').waitFor();
  await agent.ok('release', '1');
  await page.locator('tr[data-job="1.0"]').getByText('running').waitFor();
});

it('made no error in the browser, and ends with the agent', async () => {
  const own = complaints.filter((text) => !/ERR_CONNECTION_REFUSED|Failed to load resource/.test(text));
  expect(own).toEqual([]);
  await agent.ok('down');
  await until('the end of the server', () =>
    status('/', { host: new URL(base).host }).then(
      () => undefined,
      () => true,
    ),
  );
});
