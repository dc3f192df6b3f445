// Runs the sweep by the API with a Gryphus of its own, shows how far it is, sums up, and leaves nothing running.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Gryphus, GryphusError } from 'gryphus';

const here = dirname(fileURLToPath(import.meta.url));
const results = join(here, 'results');
const home = process.env.GRYPHUS_HOME ?? join(here, '../../.gryphus');
const file = join(here, 'pi.sub');

mkdirSync(home, { recursive: true, mode: 0o700 });
claim(join(home, 'sweep.pid'));
rmSync(results, { recursive: true, force: true });
mkdirSync(results);

const stopped = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stopped.abort());

let shown = 0;
const ranBefore = (await Gryphus.statusWithoutQueue({ home })).running;
const gryphus = await Gryphus.open({ home, install: process.argv.includes('--install'), onFetch }).catch(give);
const began = Date.now();
let cluster;
let ended = false;
try {
  const text = readFileSync(file, 'utf8');
  const submitted = await gryphus.submit({ text, file, cwd: here });
  cluster = submitted.cluster;
  const well = await follow(cluster, submitted.total);
  ended = !stopped.signal.aborted;
  process.exitCode = well ? 0 : stopped.signal.aborted ? 130 : 1;
} finally {
  if (!ended && cluster !== undefined) {
    console.error('\nThe sweep was interrupted; its jobs are removed.');
    await gryphus.act('remove', { clusters: [cluster], reason: 'the sweep was interrupted' });
    await gryphus.wait({ clusters: [cluster], timeoutMs: 20_000 });
  }
  await gryphus.close();
  if (!ranBefore) await Gryphus.down({ home });
}

/** One sweep at a time: this process's, until it ends. */
function claim(file) {
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' });
    process.once('exit', () => rmSync(file, { force: true }));
  } catch {
    const other = Number(readFileSync(file, 'utf8'));
    try {
      process.kill(other, 0);
    } catch {
      rmSync(file, { force: true });
      return claim(file);
    }
    console.error(`gryphus: a sweep runs already in ${home} (process ${other}).`);
    process.exit(75);
  }
}

/** Where there is no Redis, one is fetched. */
function onFetch({ step, percent }) {
  const line = 'Fetching a Redis server: this machine has none';
  if (process.stderr.isTTY)
    process.stderr.write(
      `\r\x1b[K${line}: ${Math.floor(percent)} %${step === 'done' || step === 'failed' ? '\n' : ''}`,
    );
  else if (percent === 0 && step !== 'failed') console.error(`${line}.`);
}

/** An error that says what to do about it is enough; any other is a fault. */
function give(error) {
  if (!(error instanceof GryphusError)) throw error;
  console.error([`gryphus: ${error.message}`, ...error.suggestions.map((one) => `  → ${one}`)].join('\n'));
  process.exit(error.exitCode);
}

/** Shows the jobs' way to their end; true when all of them went well. */
async function follow(id, total) {
  const jobs = { clusters: [id] };
  const ended = gryphus.wait({ ...jobs, until: 'settled', signal: stopped.signal }).then(
    () => true,
    (error) => {
      if (stopped.signal.aborted) return true;
      throw error;
    },
  );
  while (!(await Promise.race([ended, sleep(300, false)]))) show(total, await gryphus.totals(jobs));
  const last = await gryphus.totals(jobs);
  show(total, last, true);
  return !stopped.signal.aborted && summary(id, total, last);
}

function show(total, now, end = false) {
  const left = now.idle + now.running + now.held + now.suspended;
  const done = total - left;
  const seconds = Math.round((Date.now() - began) / 1000);
  const bar = '█'.repeat(Math.round((done / total) * 20)).padEnd(20, '░');
  const held = now.held > 0 ? `, ${now.held} held` : '';
  const line = `${bar} ${done} of ${total} jobs done, ${now.running} running, ${now.idle} waiting${held} (${seconds} s)`;
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${line}${end ? '\n' : ''}`);
  else if (Math.floor((done / total) * 10) !== Math.floor((shown / total) * 10)) console.error(line);
  shown = done;
}

async function summary(id, total, last) {
  // A job that has ended may be in the queue for a moment yet.
  const settled = { clusters: [id], attributes: ['JobStatus', 'HoldReason', 'ExitCode'] };
  const failed = new Set();
  for await (const job of gryphus.query({ ...settled, constraint: 'JobStatus == 5 || ExitCode =!= 0' })) {
    if (job.ad.JobStatus === 5 && failed.size < 3)
      console.error(`job ${job.id.cluster}.${job.id.proc} is held: ${job.ad.HoldReason}`);
    failed.add(job.id.proc);
  }
  for await (const job of gryphus.history({ ...settled, constraint: 'ExitCode =!= 0' })) failed.add(job.id.proc);
  if (last.held > 0) await gryphus.act('remove', { clusters: [id] });

  let inside = 0;
  let throws = 0;
  for (const name of readdirSync(results).filter((one) => one.startsWith('hits.'))) {
    const [hits = 0, all = 0] = readFileSync(join(results, name), 'utf8').trim().split(' ').map(Number);
    inside += hits;
    throws += all;
  }
  console.log(`results: ${results}/hits.*.txt (each job's log: out.*.txt; the user log: pi.log)`);
  console.log(`the daemons' logs: ${gryphus.paths.logDir}`);
  const pi = throws > 0 ? ((4 * inside) / throws).toFixed(4) : '?';
  console.log(`pi ≈ ${pi} (${total} jobs, ${failed.size} failed)`);
  return failed.size === 0;
}
