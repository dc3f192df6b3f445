// A real browser at an agent's page, for benchmarks.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';

export class Browser {
  static async start(agent) {
    const browser = new Browser();
    browser.chromium = await chromium.launch({
      executablePath: '/usr/bin/chromium',
      args: ['--no-sandbox', '--disable-dev-shm-usage'],
    });
    browser.page = await browser.chromium.newPage({ viewport: { width: 1280, height: 800 } });
    const { address } = JSON.parse(agent.ok('web', '--no-open', '--json').stdout);
    browser.origin = new URL(address).origin;
    browser.asked = [];
    browser.page.on('request', (request) => browser.asked.push(request.url()));
    browser.page.on('pageerror', (error) => console.error(error.message));
    await browser.page.goto(address);
    return browser;
  }

  async view(name) {
    await this.page.goto(`${this.origin}/#/${name}`);
    await this.page.getByText('Live').waitFor();
  }

  /** Until an expression in the page is true, looked at before each picture. Not `waitForFunction`: the page allows no eval. */
  async until(expression, timeout = 180_000) {
    const seen = await this.page.evaluate(`new Promise((resolve) => {
      const end = performance.now() + ${timeout};
      const look = () => {
        const is = ${expression};
        if (is || performance.now() > end) resolve(Boolean(is));
        else requestAnimationFrame(look);
      };
      look();
    })`);
    if (!seen) throw new Error(`After ${timeout} ms this was not so: ${expression}`);
  }

  /** MB: the scripts' objects, and the process of the page (its share of what several processes share). */
  async memory() {
    const session = await this.page.context().newCDPSession(this.page);
    await session.send('HeapProfiler.collectGarbage');
    await session.send('Performance.enable');
    const { metrics } = await session.send('Performance.getMetrics');
    await session.detach();
    const whole = await this.chromium.newBrowserCDPSession();
    const { processInfo } = await whole.send('SystemInfo.getProcessInfo');
    await whole.detach();
    const shares = processInfo.filter(({ type }) => type === 'renderer').map(({ id }) => shareOf(id));
    const heap = metrics.find(({ name }) => name === 'JSHeapUsedSize').value / 1e6;
    return { heap, process: Math.max(...shares) };
  }

  async end() {
    await this.chromium.close();
  }
}

function shareOf(pid) {
  return Number(/^Pss:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0) / 1000;
}

/** Until the agent's processes do no more than wait. */
export async function settled(agent) {
  for (let last = -1; ; ) {
    const now = agent.processes().reduce((sum, { cpu }) => sum + cpu, 0);
    if (now - last < 0.3) return;
    last = now;
    await sleep(3000);
  }
}
