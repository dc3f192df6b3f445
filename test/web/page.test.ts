import { readFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { join } from 'node:path';
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
  ({ page, complaints, base } = await openPage(agent, await browser.newContext()));
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

it('fetches the samples of the past once, and then what came since', async () => {
  await page.goto(`${base}/#/jobs`);
  // A view that is left gives its requests up.
  const answered = page.waitForResponse(
    async (response) => /\/overview\?after=[1-9]/.test(response.url()) && (await response.finished()) === null,
  );
  await page.goto(`${base}/#/`);
  const answer = await answered;
  const after = Number(new URL(answer.url()).searchParams.get('after'));
  const { samples } = (await answer.json()) as { samples: { at: number }[] };
  expect(samples.filter(({ at }) => at <= after)).toEqual([]);
  await page.getByRole('img', { name: /jobs/i }).first().waitFor();
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

it('comes back from a job to what the box chose, and shows all jobs by the link to them', async () => {
  await page.goto(`${base}/#/jobs`);
  const box = page.getByRole('searchbox');
  await box.fill('job:1.0 "a/b?#%"');
  await page.getByText('0 of 1 jobs').waitFor();
  await box.fill('job:1.0');
  await page.getByText('1 of 1 jobs').waitFor();
  await page.locator('tr[data-job="1.0"] a').first().click();
  await page.getByRole('heading', { name: '1.0' }).waitFor({ state: 'attached' });
  await page.goBack();
  await page.getByText('1 of 1 jobs').waitFor();
  expect(await box.inputValue()).toBe('job:1.0');
  await page.reload();
  await page.getByText('1 of 1 jobs').waitFor();
  expect(await box.inputValue()).toBe('job:1.0');
  await box.fill('x y/z');
  await page.waitForURL(/x%20y%2Fz$/);
  await page.getByRole('link', { name: 'Jobs', exact: true }).click();
  await page.waitForFunction(`document.querySelector('[type="search"]').value === ''`);
  await page.getByText('1 of 1 jobs').waitFor();
});

it('gives nothing without the cookie and the key, or to another host or origin', async () => {
  const session = await page.context().cookies();
  const cookie = session.map(({ name, value }) => `${name}=${value}`).join('; ');
  const [own = ''] = cookie.split('=', 1);
  expect(own).toMatch(/^gryphus-[0-9a-f]{12}$/);
  const key = await keyOf(page);
  const { host } = new URL(base);
  const good = { host, cookie, 'x-gryphus-key': key };
  expect(session[0]).toMatchObject({ httpOnly: true, sameSite: 'Strict' });
  expect(await status('/api/v1/session', good)).toBe(200);
  // Cookies of other ports of this machine, which the browser sends too.
  for (const all of [`${own}=1; ${cookie}`, `${cookie}; ${own}=1`, `gryphus-000000000000=1; ${cookie}`])
    expect(await status('/api/v1/session', { ...good, cookie: all }), all).toBe(200);
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

it('is served once when it is started twice at the same time', async () => {
  await agent.ok('web', '--stop');
  const started = await Promise.all([addressOf(agent), addressOf(agent)]);
  expect(started[0]?.origin).toBe(started[1]?.origin);
  const { host, href } = started[0] ?? new URL(base);
  const token = readFileSync(join(agent.home, 'state/web/token'), 'utf8').trim();
  base = new URL(href).origin;
  expect(await status('/api/v1/session', { host, authorization: `Bearer ${token}` })).toBe(200);
  await page.goto(href);
  await page.getByText('Live').waitFor();
});

it('stays logged in when another page leads to it with a key of its own, or to an address that is none', async () => {
  for (const hash of ['#key=stranger', '#/job/%E0%A4%A']) {
    await page.goto('about:blank');
    await page.goto(`${base}/${hash}`);
    await page.getByText('Live').waitFor();
  }
});

it('accepts nothing that was sent to its port while it was away, and goes on with a new address', async () => {
  await page.goto(`${base}/#/jobs`);
  await page.getByText('Live').waitFor();
  const token = readFileSync(join(agent.home, 'state/web/token'), 'utf8').trim();
  await agent.ok('web', '--stop');
  await page.getByText('The server is away').waitFor();
  const { port, host } = new URL(base);
  // Another user of the machine listens where the page looks for its server.
  const stolen = await new Promise<Record<string, string>>((resolve) => {
    const thief = createServer(({ headers }, response) => {
      response.writeHead(500).end();
      thief.close(() =>
        resolve({ host, cookie: headers.cookie ?? '', 'x-gryphus-key': String(headers['x-gryphus-key']) }),
      );
      thief.closeAllConnections();
    });
    thief.listen(Number(port), '127.0.0.1');
  });
  expect(stolen['cookie']).not.toBe('');
  const { href, origin } = await addressOf(agent);
  expect(origin).toBe(base);
  expect(await status('/api/v1/session', stolen)).toBe(403);
  expect(await status('/api/v1/session', { host, authorization: `Bearer ${token}` })).toBe(403);
  await page.getByText('This browser is not logged in').waitFor();
  const other = await page.context().newPage();
  await other.goto(href);
  for (const tab of [other, page]) await tab.getByText('Live').waitFor();
  await other.close();
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
