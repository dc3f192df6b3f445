import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent, until } from '../agent/agent.ts';
import { SLOW } from '../slow.ts';
import { addressOf, keyOf, openPage, startBrowser } from './page.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const VIEWS = ['', 'jobs', 'job/1.0', 'dags', 'dag/2', 'sites', 'pool', 'credentials', 'events'];
const MANY = 100_000;

interface Violation {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string }[];
}

/** What axe-core finds on the page that is serious or worse. It runs beside the page's own policy of scripts. */
async function serious(page: Page): Promise<string[]> {
  const session = await page.context().newCDPSession(page);
  await session.send('Runtime.evaluate', { expression: AXE });
  const { result } = await session.send('Runtime.evaluate', {
    expression: 'axe.run(document, { resultTypes: ["violations"] }).then((found) => found.violations)',
    awaitPromise: true,
    returnByValue: true,
  });
  await session.detach();
  return (result.value as Violation[])
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' | ')}`);
}

/** The process that has noted itself under this name. */
function pidOf(agent: TestAgent, name: string): number {
  const dir = join(agent.home, 'state/daemons');
  const files = readdirSync(dir).filter((file) => file.endsWith('.json'));
  const all = files.map((file) => JSON.parse(readFileSync(join(dir, file), 'utf8')) as { name: string; pid: number });
  const found = all.find((one) => one.name === name);
  if (!found) throw new Error(`no ${name} is noted`);
  return found.pid;
}

describe.skipIf(!SLOW)('the page', () => {
  let agent: TestAgent;
  let browser: Browser;
  let page: Page;
  let base: string;

  beforeAll(async () => {
    agent = new TestAgent();
    agent.file('node.sub', 'executable = /bin/sleep\narguments = 600\ntransfer_executable = false\nqueue\n');
    agent.file('d.dag', 'JOB a node.sub\nJOB b node.sub\nJOB c node.sub\nPARENT a CHILD b c\n');
    await agent.submit('executable = /bin/sleep\narguments = 900\ntransfer_executable = false\noutput = o\nqueue');
    await agent.ok('dag', 'submit', 'd.dag');
    browser = await startBrowser();
    ({ page, base } = await openPage(agent, await browser.newContext()));
  });
  afterAll(async () => {
    await browser.close();
    await agent.end();
  });

  for (const scheme of ['light', 'dark'] as const)
    it(`is found good by axe-core in every view, ${scheme}`, async () => {
      await page.emulateMedia({ colorScheme: scheme });
      for (const view of VIEWS) {
        await page.goto(`${base}/#/${view}`);
        await page.getByText('Live').waitFor();
        await page.locator('main *').first().waitFor();
        expect(await serious(page), view).toEqual([]);
      }
    });

  it('draws the graph of a DAG, unfolds around a node and halts it', async () => {
    await page.goto(`${base}/#/dag/2`);
    const box = page.getByRole('button', { name: /^a: / });
    await box.focus();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Around a node' }).waitFor();
    await page.getByRole('button', { name: 'Whole DAG' }).click();
    await page.getByRole('button', { name: 'Halt' }).click();
    await page.getByText('Halted. 0 of 3 nodes done', { exact: false }).waitFor();
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.getByText(/^0 of 3 nodes done/).waitFor();
  });

  it('fits a window of 360 pixels', async () => {
    await page.setViewportSize({ width: 360, height: 700 });
    for (const view of VIEWS) {
      await page.goto(`${base}/#/${view}`);
      await page.locator('main *').first().waitFor();
      const wide = await page.evaluate('document.documentElement.scrollWidth');
      expect(wide, view).toBeLessThanOrEqual(360);
    }
    await page.setViewportSize({ width: 1280, height: 800 });
  });

  it('shows a change within 300 ms', async () => {
    await page.goto(`${base}/#/jobs`);
    await page.locator('tr[data-job="1.0"]').waitFor();
    const seen: number[] = [];
    for (const words of ['hold', 'release', 'hold', 'release', 'hold']) {
      // A released job may run before it was drawn as idle.
      const held = words === 'hold';
      const drawn = page.evaluate(`new Promise((resolve) => {
        const look = () =>
          document.querySelector('tr[data-job="1.0"] .state')?.textContent.includes('■') === ${held}
            ? resolve(Date.now())
            : requestAnimationFrame(look);
        look();
      })`);
      await agent.ok(words, '1.0');
      const at = Number(await drawn);
      const events = (await (
        await page.request.get(`${base}/api/v1/events`, { headers: { 'x-gryphus-key': await keyOf(page) } })
      ).json()) as {
        at: number;
        job?: string;
        text: string;
      }[];
      const event = events.findLast(({ job, text }) => job === '1.0' && text.startsWith(words));
      seen.push(at - (event?.at ?? 0));
    }
    seen.sort((a, b) => a - b);
    console.log(`event to pixel: ${seen.join(', ')} ms`);
    expect(seen[2]).toBeLessThanOrEqual(300);
  });

  it('shows a hundred thousand jobs at once and lets them be scrolled, sorted and chosen', async () => {
    agent.file('many.sub', `executable = /bin/true\ntransfer_executable = false\nhold = true\nqueue ${MANY}\n`);
    await agent.ok('submit', 'many.sub');
    const fresh = await browser.newContext();
    const { page: tab } = await openPage(agent, fresh);
    const begun = Date.now();
    await tab.reload();
    await tab.locator('[data-count="held"]', { hasText: /100.000|100.001/ }).waitFor();
    const first = Date.now() - begun;
    await tab.goto(`${base}/#/jobs`);
    const loading = Date.now();
    await tab.locator('tr[data-job]').first().waitFor();
    const table = Date.now() - loading;
    const region = tab.getByRole('region', { name: 'Jobs' });
    await region.evaluate((element) => element.scrollTo({ top: element.scrollHeight }));
    await tab.locator('tr[data-job="1.0"]').waitFor();
    await tab.getByRole('searchbox').fill('ProcId >= 50000');
    await tab.getByText(/^50.000 of 100.00\d jobs/).waitFor();
    await tab.getByLabel('Select all that fit the box').check();
    await tab.getByRole('button', { name: 'Remove', exact: true }).click();
    await tab.getByText('50000 jobs will be removed.', { exact: false }).waitFor();
    await tab.getByRole('button', { name: 'Cancel' }).click();
    const session = await fresh.newCDPSession(tab);
    await session.send('Performance.enable');
    const { metrics } = await session.send('Performance.getMetrics');
    const heap = (metrics.find(({ name }) => name === 'JSHeapUsedSize')?.value ?? 0) / 2 ** 20;
    // How fast: bench/web.
    console.log(`first picture ${first} ms, table ${table} ms, heap ${heap.toFixed(1)} MB`);
    expect(heap).toBeLessThan(200);
    await fresh.close();
  });

  it('goes on after the Scheduler and the server were killed, in two tabs', async () => {
    const { page: other } = await openPage(agent, page.context(), 'jobs/cluster:1');
    await page.goto(`${base}/#/jobs/cluster:1`);
    process.kill(pidOf(agent, 'scheduler'), 'SIGKILL');
    process.kill(pidOf(agent, 'web'), 'SIGKILL');
    await Promise.all([page, other].map((tab) => tab.getByText('The server is away').waitFor()));
    const { href, origin } = await addressOf(agent);
    expect(origin).toBe(base);
    const third = await page.context().newPage();
    await third.goto(href);
    for (const tab of [page, other]) await tab.getByText('Live').waitFor();
    await third.close();
    await agent.ok('rm', '1.0');
    for (const tab of [page, other]) await tab.getByText('0 of 100', { exact: false }).waitFor();
    await other.close();
  });

  it('serves its description and its metrics to programs that have the token', async () => {
    const token = readFileSync(join(agent.home, 'state/web/token'), 'utf8').trim();
    const get = (path: string) => fetch(`${base}${path}`, { headers: { authorization: `Bearer ${token}` } });
    const described = (await (await get('/api/v1/openapi.json')).json()) as { openapi: string; paths: object };
    expect(described.openapi).toBe('3.1.0');
    expect(Object.keys(described.paths)).toContain('/api/v1/jobs/{job}');
    const metrics = await (await get('/metrics')).text();
    expect(metrics).toMatch(/^gryphus_jobs\{state="held"\} \d+$/m);
    expect(metrics.endsWith('# EOF\n')).toBe(true);
    await until('the removal', async () => ((await agent.ads(1))[0]?.['JobStatus'] === 3 ? true : undefined));
  });
});
