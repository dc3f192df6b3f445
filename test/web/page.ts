import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import type { TestAgent } from '../agent/agent.ts';

/** Debian's Chromium; nothing is downloaded. */
export function startBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-dev-shm-usage'] });
}

/** A new address of the agent's page, which can be opened once. */
export async function addressOf(agent: TestAgent): Promise<URL> {
  const { address } = JSON.parse(await agent.ok('web', '--no-open', '--json')) as { address: string };
  return new URL(address);
}

/** The page, logged in, with what its scripts complained of. */
export async function openPage(
  agent: TestAgent,
  browser: Browser | BrowserContext,
  view = '',
): Promise<{ readonly page: Page; readonly complaints: string[]; readonly base: string }> {
  const { href, origin } = await addressOf(agent);
  const page = await browser.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  await page.goto(href);
  await page.goto(`${origin}/#/${view}`);
  return { page, complaints, base: origin };
}

/** What the page proves itself with besides its cookie. */
export async function keyOf(page: Page): Promise<string> {
  return String(await page.evaluate('localStorage.getItem("gryphus-key")'));
}
