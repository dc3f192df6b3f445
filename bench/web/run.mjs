// The live page in a real browser: node bench/web/run.mjs [--only table|pixel|watch] [--jobs N] [--rate N] [--seconds N], after
// `npm run build`. It needs Debian's chromium.
import { loadavg } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Agent } from '../scale/agent.mjs';
import { Browser, settled } from './browser.mjs';
import { pixel } from './pixel.mjs';
import { table } from './table.mjs';

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    jobs: { type: 'string' },
    rate: { type: 'string', default: '1000' },
    seconds: { type: 'string' },
  },
});
const wanted = (part) => values.only === undefined || values.only === part;
const jobsOr = (number) => Number(values.jobs ?? number);

function row(what, value, unit, more = '') {
  const load = loadavg()[0].toFixed(1);
  console.log(`| ${what} | ${value.toFixed(value < 10 ? 2 : 0)} ${unit} | ${more} | ${load} |`);
}

/** An agent with jobs that wait for more memory than any machine has, or are held. */
async function withJobs(jobs, how, work) {
  console.log(`\n| ${jobs} jobs | measured | | load |\n| --- | ---: | --- | ---: |`);
  const agent = new Agent('[pool]\ncpus = 2\n');
  try {
    agent.ok('up');
    const lines = ['executable = /bin/sleep', 'arguments = 1$(Process)', how, `queue ${jobs}`, ''];
    agent.ok('submit', agent.file('many.sub', lines.join('\n')));
    await settled(agent);
    await work(agent);
  } finally {
    agent.end();
  }
}

/** Processor time of each process of the agent in percent of a core, from now on. */
async function share(agent, what, seconds) {
  const spent = () => Object.fromEntries(agent.processes().map(({ part, cpu }) => [part, cpu]));
  const before = spent();
  await sleep(1000 * seconds);
  const used = Object.entries(spent()).map(([part, cpu]) => [part, (100 * (cpu - (before[part] ?? 0))) / seconds]);
  const all = used.reduce((sum, [, percent]) => sum + percent, 0);
  row(what, all, '%', used.map(([part, percent]) => `${part} ${percent.toFixed(1)}`).join(', '));
}

async function watch(agent, seconds) {
  await share(agent, 'nobody watches, all processes of the agent', seconds);
  const browser = await Browser.start(agent);
  try {
    for (let run = 0; run < 3; run++) {
      const began = performance.now();
      await browser.page.goto(`${browser.origin}/#/`);
      await browser.page.reload({ waitUntil: 'commit' });
      await browser.until(`/\\d/.test(document.querySelector('[data-count="idle"]')?.textContent)`);
      row('overview, from the reload to its numbers', performance.now() - began, 'ms');
    }
    for (const view of ['', 'jobs', 'jobs/sleep']) {
      await browser.view(view);
      await sleep(60_000);
      await share(agent, `#/${view} is watched, nothing changes`, seconds);
    }
    const { heap, process } = await browser.memory();
    row('memory of the page: objects', heap, 'MB');
    row('memory of the page: process', process, 'MB');
  } finally {
    await browser.end();
  }
}

if (wanted('table'))
  await withJobs(jobsOr(1_000_000), 'request_memory = 90T', (agent) => table(agent, jobsOr(1_000_000), row));
if (wanted('watch'))
  await withJobs(jobsOr(100_000), 'request_memory = 90T', (agent) => watch(agent, Number(values.seconds ?? 60)));
if (wanted('pixel')) {
  const dist = resolve(process.env.GRYPHUS_DIST ?? join(import.meta.dirname, '../../dist'));
  const { Gryphus } = await import(join(dist, 'index.js'));
  await withJobs(jobsOr(100_000), 'hold = true', async (agent) => {
    const gryphus = await Gryphus.open({ home: agent.env.GRYPHUS_HOME });
    const wish = { rate: Number(values.rate), seconds: Number(values.seconds ?? 10), jobs: jobsOr(100_000) };
    await pixel(agent, gryphus, wish, row).finally(() => gryphus.close());
  });
}
