import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent } from '../agent/agent.ts';
import { SLOW } from '../slow.ts';
import { openPage, startBrowser } from './page.ts';

const JOBS = 1_000_000;

/** The jobs whose rows are wholly seen, from above. */
const SEEN = `(() => {
  const region = document.querySelector('[role=region][aria-label=Jobs]');
  const head = region.querySelector('thead th').getBoundingClientRect().bottom;
  const foot = region.getBoundingClientRect().top + region.clientTop + region.clientHeight;
  return [...region.querySelectorAll('tr[data-job]')]
    .filter((row) => row.getBoundingClientRect().top >= head - 1 && row.getBoundingClientRect().bottom <= foot + 1)
    .map((row) => row.dataset.job);
})()`;

describe.skipIf(!SLOW)(
  'a million jobs on the page',
  () => {
    let agent: TestAgent;
    let browser: Browser;
    let page: Page;
    let complaints: string[];
    const asked: string[] = [];

    /** Until the jobs that are seen are such. */
    const seen = async (such: (jobs: readonly string[]) => boolean): Promise<readonly string[]> => {
      for (const end = Date.now() + 120_000; ; ) {
        const jobs = await page.evaluate<string[]>(SEEN);
        if (such(jobs)) return jobs;
        if (Date.now() > end) throw new Error(`seen are ${jobs.join(' ')}`);
        await page.evaluate('new Promise(requestAnimationFrame)');
      }
    };
    const scrollTo = (part: number) =>
      page.evaluate(
        `(() => { const one = document.querySelector('[role=region][aria-label=Jobs]');
        one.scrollTo({ top: (one.scrollHeight - one.clientHeight) * ${part} }); })()`,
      );
    const procOf = (job: string | undefined): number => Number(job?.split('.')[1]);
    const counted = async (found: number) => {
      const digits = `${found}${JOBS}`.split('').join('\\D*');
      await page.getByText(new RegExp(`^${digits} jobs`)).waitFor({ timeout: 120_000 });
    };

    beforeAll(async () => {
      agent = new TestAgent();
      agent.file(
        'million.sub',
        `executable = /bin/sleep\narguments = 1$(Process)\nrequest_memory = 90T\nqueue ${JOBS}\n`,
      );
      await agent.ok('submit', 'million.sub');
      browser = await startBrowser();
      ({ page, complaints } = await openPage(agent, browser, 'jobs'));
      page.on('request', (request) => asked.push(request.url()));
    }, 300_000);
    afterAll(async () => {
      await browser.close();
      await agent.end();
    });

    for (const height of [800, 1400])
      it(`shows its first row, its last and those in the middle in a window of ${height} pixels`, async () => {
        await page.setViewportSize({ width: 1280, height });
        await seen((jobs) => jobs[0] === `1.${JOBS - 1}`);
        await scrollTo(1);
        await seen((jobs) => jobs.at(-1) === '1.0');
        await scrollTo(0.5);
        await seen((jobs) => jobs.includes(`1.${JOBS / 2}`));
        await scrollTo(0);
        await seen((jobs) => jobs[0] === `1.${JOBS - 1}`);
      });

    it('leaves no row out when it is scrolled by wheel and keys, and goes on where it was', async () => {
      await page.setViewportSize({ width: 1280, height: 800 });
      await scrollTo(0.25);
      let last = await seen((jobs) => jobs.includes(`1.${(JOBS * 3) / 4}`));
      const region = page.getByRole('region', { name: 'Jobs' });
      await region.hover();
      for (const move of [
        ...Array.from({ length: 12 }, () => () => page.mouse.wheel(0, 300)),
        ...Array.from({ length: 4 }, () => () => region.press('PageDown')),
      ]) {
        const from = procOf(last[0]);
        await move();
        const next = await seen((jobs) => jobs.length > 10 && procOf(jobs[0]) < from);
        expect(procOf(next[0]), 'a row was left out').toBeGreaterThanOrEqual(procOf(last.at(-1)) - 1);
        last = next;
      }
      // The bar comes to rest where this part of the list is; what is seen stays.
      await page.evaluate('new Promise((done) => setTimeout(done, 1000))');
      const rest = await page.evaluate<string[]>(SEEN);
      expect(Math.abs(procOf(rest[0]) - procOf(last[0]))).toBeLessThan(20);
      const part = Number(
        await page.evaluate(`(() => { const one = document.querySelector('[role=region][aria-label=Jobs]');
        return one.scrollTop / (one.scrollHeight - one.clientHeight); })()`),
      );
      expect(part).toBeCloseTo(1 - procOf(rest[0]) / JOBS, 4);
    });

    it('sorts, filters by a word and by a constraint, and selects, and fetches only what it shows', async () => {
      await scrollTo(0);
      await page.getByRole('button', { name: 'Command' }).click();
      await seen((jobs) => jobs[0] === '1.0' && jobs[1] === '1.1');
      await page.getByRole('button', { name: 'Command' }).click();
      await seen((jobs) => jobs[0] === `1.${JOBS - 1}`);
      await page.getByRole('searchbox').fill('1999999');
      await counted(1);
      await page.getByRole('searchbox').fill('ProcId % 1000 == 7 && RequestMemory > 5');
      await counted(JOBS / 1000);
      await page.getByLabel('Select all that fit the box').check();
      await page.getByRole('button', { name: 'Hold', exact: true }).click();
      await page.getByText(`${JOBS / 1000} jobs will be held.`, { exact: false }).waitFor();
      await page.locator('dialog .main').click();
      await page
        .getByText('1,000 done.')
        .or(page.getByText(/^1\D?000 done/))
        .waitFor();
      await page.getByRole('button', { name: 'Close' }).click();
      await page.getByRole('searchbox').fill('state:held');
      await counted(JOBS / 1000);
      for (const url of asked.filter((one) => one.includes('/jobs?')))
        expect(Number(new URL(url).searchParams.get('limit')), url).toBeLessThan(200);
      expect(await page.locator('tr[data-job]').count()).toBeLessThan(200);
      expect(complaints).toEqual([]);
    });
  },
  600_000,
);
