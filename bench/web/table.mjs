// The table of all jobs: each thing that people do with it, until its answer is drawn.
import { Browser } from './browser.mjs';

const STATUS = `document.querySelector('p[role=status]').textContent.replace(/\\D/g, ' ').trim()`;

/** Which jobs are wholly seen in the table, from above. */
const SEEN = `(() => {
  const region = document.querySelector('[role=region][aria-label=Jobs]');
  const box = region.getBoundingClientRect();
  const head = region.querySelector('thead th').getBoundingClientRect().bottom;
  return [...region.querySelectorAll('tr[data-job]')]
    .filter((row) => row.getBoundingClientRect().top >= head - 2 && row.getBoundingClientRect().bottom <= box.bottom + 2)
    .map((row) => row.dataset.job);
})()`;

const sees = (job) => `${SEEN}.includes('${job}')`;

export async function table(agent, jobs, row) {
  const browser = await Browser.start(agent);
  const { page } = browser;
  const click = async (name) => page.getByRole('button', { name, exact: true }).click();
  const server = () => agent.processes().find(({ part }) => part === 'web');
  const timed = async (what, act, expression, timeout) => {
    const [began, requests, before] = [performance.now(), browser.asked.length, server().cpu];
    await act();
    await browser.until(expression, timeout);
    const [took, spent] = [performance.now() - began, server().cpu - before];
    row(
      what,
      took,
      'ms',
      `${browser.asked.length - requests} requests, ${spent.toFixed(2)} s of the server's processor time`,
    );
  };
  const to = (part) => () =>
    page
      .getByRole('region', { name: 'Jobs' })
      .evaluate((region, of) => region.scrollTo({ top: (region.scrollHeight - region.clientHeight) * of }), part);
  const box = (text) => () => page.getByRole('searchbox').fill(text);
  const count = (n) => `${STATUS}.replaceAll(' ', '') === '${n}${jobs}'`;
  try {
    await timed('open the table, first rows', () => browser.view('jobs'), sees(`1.${jobs - 1}`));
    await timed('to the end', to(1), sees('1.0'));
    await timed('to the middle', to(0.5), sees(`1.${Math.round(jobs / 2)}`));
    await timed(
      'a screen further, by key',
      () => page.getByRole('region', { name: 'Jobs' }).press('PageDown'),
      `!${sees(`1.${Math.round(jobs / 2)}`)}`,
    );
    await timed('back to the top', to(0), sees(`1.${jobs - 1}`));
    row('memory of the page: objects', (await browser.memory()).heap, 'MB');
    await timed('sort by command, the first time', () => click('Command'), sees('1.0'));
    await timed('the other way round', () => page.getByRole('button', { name: /^Command/ }).click(), sees(last(jobs)));
    await timed('sort by time of submit', () => click('Submitted'), sees('1.0'));
    await timed('to the middle of that', to(0.5), sees(`1.${Math.round(jobs / 2)}`));
    await timed('a word that few have', box('199999'), count(words(jobs)));
    await timed('a constraint over all', box('ProcId % 1000 == 7 && RequestMemory > 5'), count(jobs / 1000));
    await page.getByLabel('Select all that fit the box').check();
    await timed('select these, what would hold do', () => click('Hold'), `document.querySelector('dialog .says')`);
    await click('Cancel');
    await timed('the box emptied', box(''), count(jobs));
    await page.getByLabel('Select all that fit the box').check();
    await timed('select all, what would hold do', () => click('Hold'), `document.querySelector('dialog .says')`);
    await timed(
      'hold all',
      () => page.locator('dialog .main').click(),
      `document.querySelector('dialog [role=status]')?.textContent.includes('done')`,
      600_000,
    );
    await click('Close');
    const { heap, process } = await browser.memory();
    row('memory of the page at the end: objects', heap, 'MB');
    row('memory of the page at the end: process', process, 'MB');
    row('memory of the server at most', server().peak, 'MB');
  } finally {
    await browser.end();
  }
}

/** The commands are `sleep 1N`, sorted as texts. */
function last(jobs) {
  return `1.${'9'.repeat(String(jobs - 1).length)}`;
}

function words(jobs) {
  let found = 0;
  for (let proc = 0; proc < jobs; proc++)
    if (`1${proc}`.includes('199999') || `1.${proc}`.includes('199999')) found += 1;
  return found;
}
