// From the event to the pixel: the time that the queue gave an event, and when what it changed was drawn.
import { setTimeout as sleep } from 'node:timers/promises';
import { Browser } from './browser.mjs';

/** Notes when which rows of the table came, changed and went, and which numbers of the overview were drawn. */
const WATCH = `(() => {
  const drawn = (window.drawn = { rows: [], numbers: [] });
  let rows = new Map();
  const look = () => {
    const now = new Map();
    for (const row of document.querySelectorAll('tr[data-job]'))
      now.set(row.dataset.job, row.querySelector('.state')?.textContent ?? '');
    const held = Number(document.querySelector('[data-count="held"]')?.textContent.replace(/\\D/g, '') || NaN);
    // After the picture that this change is part of.
    requestAnimationFrame(() => setTimeout(() => {
      const at = Date.now();
      for (const [job, state] of now) if (rows.get(job) !== state) drawn.rows.push([job, state, at]);
      for (const job of rows.keys()) if (!now.has(job)) drawn.rows.push([job, '', at]);
      if (held === held) drawn.numbers.push([held, at]);
      rows = now;
    }));
  };
  new MutationObserver(look).observe(document.getElementById('app'), { subtree: true, childList: true, characterData: true });
  look();
})()`;

const quantile = (all, of) => all.toSorted((a, b) => a - b)[Math.floor(all.length * of)] ?? Number.NaN;

/** The ends of jobs, as the queue tells them, while `work` goes on. */
async function endsDuring(gryphus, work) {
  const ends = [];
  const stop = new AbortController();
  const events = (async () => {
    for await (const event of gryphus.events({ signal: stop.signal }))
      if (event.type === 'transition' && (event.to === 'completed' || event.to === 'removed'))
        ends.push({ job: event.job, at: event.at });
  })();
  await sleep(500);
  await work();
  await sleep(3000);
  stop.abort();
  await events.catch(() => undefined);
  const span = (Math.max(...ends.map(({ at }) => at)) - Math.min(...ends.map(({ at }) => at))) / 1000;
  return { ends, rate: ends.length / span };
}

function tell(row, what, waits, rate) {
  if (waits.length === 0) throw new Error(`${what}: nothing was seen`);
  row(
    what,
    quantile(waits, 0.5),
    'ms',
    `9 of 10 within ${quantile(waits, 0.9)} ms, ${waits.length} ends at ${rate.toFixed(0)} a second`,
  );
}

/** Of each end whose job was drawn before it: until it is drawn as ended, or its row is gone. */
function rowWaits(ends, drawn) {
  const byJob = new Map();
  for (const one of drawn) byJob.set(one[0], [...(byJob.get(one[0]) ?? []), one]);
  return ends.flatMap(({ job, at }) => {
    const all = byJob.get(job) ?? [];
    const before = all.findLast(([, , when]) => when < at);
    if (!before || before[1] === '') return [];
    const seen = all.find(([, state, when]) => when >= at && (state === '' || /completed|removed/.test(state)));
    return seen ? [seen[2] - at] : [];
  });
}

/** Of each end: until the number of held jobs counts it. */
function numberWaits(ends, drawn, held) {
  let next = 0;
  return ends.flatMap(({ at }, i) => {
    while (next < drawn.length && (drawn[next][0] > held - i - 1 || drawn[next][1] < at)) next += 1;
    return next < drawn.length ? [drawn[next][1] - at] : [];
  });
}

export async function pixel(agent, gryphus, { rate, seconds, jobs }, row) {
  const browser = await Browser.start(agent);
  const watched = async (view, work) => {
    await browser.view(view);
    await sleep(2000);
    await browser.page.evaluate(WATCH);
    const done = await endsDuring(gryphus, work);
    return { ...done, drawn: await browser.page.evaluate('window.drawn') };
  };
  /** Removes held jobs, so many a second: ten of them are rows that are drawn, the others the first jobs. */
  let [next, top] = [0, jobs - 1];
  const remove = async () => {
    const began = performance.now();
    for (let done = 0; done < rate * seconds; ) {
      const due = Math.min(rate * seconds, Math.floor(((performance.now() - began) * rate) / 1000)) - done;
      if (due > 0) {
        const tenths = (ends) => Math.floor((10 * ends) / rate);
        const ids = Array.from({ length: due }, (_, i) => {
          const drawn = tenths(done + i) !== tenths(done + i + 1);
          return { cluster: 1, proc: drawn ? (top -= 2) : next++ };
        });
        await gryphus.act('remove', { ids });
        done += due;
      }
      await sleep(20);
    }
  };
  try {
    const rows = await watched('jobs', remove);
    tell(row, 'rows of the table', rowWaits(rows.ends, rows.drawn.rows), rows.rate);
    await sleep(3000);
    const held = jobs - rate * seconds;
    const numbers = await watched('', remove);
    tell(row, 'numbers of the overview', numberWaits(numbers.ends, numbers.drawn.numbers, held), numbers.rate);
    agent.file('true.sub', 'executable = /bin/true\ntransfer_executable = false\nqueue 3000\n');
    await browser.view('jobs');
    const real = await watched('jobs/cluster:2', async () => {
      agent.ok('submit', 'true.sub');
      agent.ok('wait', '2', '--timeout', '120');
    });
    tell(row, 'rows of real jobs of the pool', rowWaits(real.ends, real.drawn.rows), real.rate);
  } finally {
    await browser.end();
  }
}
