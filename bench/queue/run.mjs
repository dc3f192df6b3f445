// Measures the queue: node bench/queue/run.mjs [--json] [--jobs 1000000]. It uses a private Redis in a scratch
// directory.
import { mkdtempSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { Redis } from 'ioredis';

const dist = resolve(process.env.GRYPHUS_DIST ?? 'dist');
const { openQueue, stopRedis } = await import(pathToFileURL(`${dist}/queue/api.js`).href);
const { values: options } = parseArgs({ options: { json: { type: 'boolean' }, jobs: { type: 'string' } } });
const MANY = Number(options.jobs ?? 1_000_000);

/** HTCondor 25.14 on a similar machine: the best recorded values. */
const HTCONDOR = {
  'submit of 10,000, args differ': 2.8,
  'submit of 10,000, args, out, err, log differ': 3.7,
  'memory of a queued job, args differ': 2200,
  'memory of a queued job, args, out, err, log differ': 3600,
  'q over 10,000': 0.17,
  'q over 10,000, all attributes': 0.7,
  'totals of 10,000': 0.04,
  'remove 10,000': 1.4,
};

const AD = {
  MyType: '"Job"',
  Owner: '"frida"',
  User: '"frida@home"',
  Cmd: '"/home/frida/sweep/simulate"',
  Iwd: '"/home/frida/sweep"',
  In: '"/dev/null"',
  Err: '"err"',
  Out: '"out"',
  UserLog: '"/home/frida/sweep/log"',
  JobUniverse: '9',
  GridResource: '"batch slurm hpc"',
  JobPrio: '0',
  RequestCpus: '1',
  RequestMemory: 'ifthenelse(MemoryUsage =!= undefined,MemoryUsage,(ImageSize + 1023) / 1024)',
  RequestDisk: 'DiskUsage',
  Requirements: 'true',
  Rank: '0.0',
  NumJobStarts: '0',
  QDate: '1790000000',
  ImageSize: '100',
  DiskUsage: '100',
  ...Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`Attribute${i}`, `${i}`])),
};

function* argsDiffer(count) {
  for (let i = 0; i < count; i++) yield { attrs: { Args: `"--seed ${i} --temperature ${(i * 0.37).toFixed(2)}"` } };
}

function* muchDiffers(count) {
  for (let i = 0; i < count; i++) {
    yield {
      attrs: {
        Args: `"--seed ${i} --temperature ${(i * 0.37).toFixed(2)}"`,
        Out: `"out/run.${i}.out"`,
        Err: `"out/run.${i}.err"`,
        UserLog: `"/home/frida/sweep/log/run.${i}.log"`,
      },
    };
  }
}

/** Set while a queue is open: returns the processor seconds that its Redis has used. */
let redisCpu = async () => 0;

/**
 * Wall-clock seconds, and processor seconds here and in Redis: on a shared machine, only the latter tell how fast it
 * is.
 */
async function timed(work) {
  const cpu = async () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6 + (await redisCpu());
  };
  const used = await cpu();
  const begin = performance.now();
  const result = await work();
  const seconds = (performance.now() - begin) / 1000;
  return { seconds, cpu: (await cpu()) - used, result };
}

async function withQueue(use) {
  const stateDir = mkdtempSync('/tmp/gb-');
  const queue = await openQueue({ stateDir, patienceMs: 60_000 });
  const redis = new Redis(queue.where);
  const memory = async () => Number(/used_memory:(\d+)/.exec(await redis.info('memory'))[1]);
  redisCpu = async () => {
    const info = await redis.info('cpu');
    return Number(/used_cpu_user:([\d.]+)/.exec(info)[1]) + Number(/used_cpu_sys:([\d.]+)/.exec(info)[1]);
  };
  try {
    return await use(queue, memory);
  } finally {
    redis.disconnect();
    await queue.close();
    await stopRedis({ stateDir });
    rmSync(stateDir, { recursive: true, force: true });
  }
}

const rows = [];
/** `value`: a number, or a result of `timed`. */
function row(what, value, unit, aim) {
  if (typeof value === 'object') {
    row(what, value.seconds, unit, aim);
    Object.assign(rows.at(-1), { cpuSeconds: value.cpu });
    return;
  }
  const theirs = HTCONDOR[what];
  rows.push({ what, value, unit, ...(aim && { aim }), ...(theirs && { htcondor: theirs, ratio: theirs / value }) });
}

const place = { manager: 'frida', site: 'hpc' };

async function tenThousand(label, procs) {
  await withQueue(async (queue, memory) => {
    // The first submit of a process includes loading the scripts, as each command does; the figure includes it.
    const before = await memory();
    const submitted = await timed(() => queue.submit({ clusterAd: AD, procs: procs(10_000), ...place }));
    row(`submit of 10,000, ${label}`, submitted, 's', '≤ 1 s');
    row(`memory of a queued job, ${label}`, ((await memory()) - before) / 10_000, 'bytes', '≤ 500 bytes');
    if (procs !== argsDiffer) return;

    const read = async (use) => {
      let n = 0;
      for await (const job of queue.query()) n += use(job);
      return n;
    };
    const q = await timed(() =>
      read(
        (job) =>
          ['ClusterId', 'Owner', 'QDate', 'Cmd', 'Args', 'JobStatus'].filter((name) => job.attrs.has(name)).length,
      ),
    );
    row('q over 10,000', q, 's', '≤ 0.18 s');
    const json = await timed(() => read((job) => JSON.stringify(job.attrs.toRecord()).length));
    row('q over 10,000, all attributes', json, 's', '≤ 0.7 s');
    const sums = await timed(() => queue.totals());
    row('totals of 10,000', sums, 's');
    const ids = Array.from({ length: 10_000 }, (_, proc) => ({ cluster: submitted.result.cluster, proc }));
    const change = (event) =>
      timed(() => queue.transitionMany(ids.map((id) => ({ id, event, set: { GridJobId: '"a"' } }))));
    row('10,000 transitions, by the thousand', await change('take'), 's');
    await change('takeback');
    await change('withdrawn');
    row('remove 10,000', await change('remove'), 's');
    const retired = await timed(() => queue.retire(ids));
    row('10,000 ended jobs into the history', retired, 's');
  });
}

await tenThousand('args differ', argsDiffer);
await tenThousand('args, out, err, log differ', muchDiffers);
await withQueue(async (queue, memory) => {
  const submitted = await timed(() => queue.submit({ clusterAd: AD, procs: argsDiffer(MANY), ...place }));
  row(`submit of ${MANY}`, submitted, 's');
  row(`Redis with ${MANY} queued`, (await memory()) / 1e6, 'MB', '< 1000 MB');
  row(`totals of ${MANY}`, await timed(() => queue.totals()), 's', 'at once');
  row(`the next 1000 of ${MANY}`, await timed(() => queue.nextJobs({ ...place, limit: 1000 })), 's');
});
await withQueue(async (queue) => {
  const work = queue.work('bench');
  let done = 0;
  const all = new Promise((finish) => {
    void work.run({ step: async () => void (++done === 1000 && finish()) }, { concurrency: 50 });
  });
  row(
    '1000 work items, added and done',
    await timed(async () => {
      await Promise.all(Array.from({ length: 1000 }, (_, i) => work.add('step', `site-${i}`, null)));
      await all;
    }),
    's',
  );
});

if (options.json) console.log(JSON.stringify(rows, null, 2));
else {
  const number = (value) => (value >= 100 ? value.toFixed(0) : value.toPrecision(3));
  console.log(
    '| what | Gryphus | of which CPU | aim | HTCondor | HTCondor ÷ Gryphus |\n| --- | --- | --- | --- | --- | --- |',
  );
  for (const { what, value, unit, aim = '', cpuSeconds, htcondor, ratio } of rows) {
    const theirs = htcondor === undefined ? ' | ' : `${htcondor} ${unit} | ${number(ratio)}`;
    console.log(
      `| ${what} | ${number(value)} ${unit} | ${cpuSeconds === undefined ? '' : `${number(cpuSeconds)} s`} | ${aim} | ${theirs} |`,
    );
  }
}
