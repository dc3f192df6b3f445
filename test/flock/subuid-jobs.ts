import { basename } from 'node:path';
import { StrangerWorker } from './stranger-worker.ts';

/*
 * Run by an ordinary user: jobs of strangers of a worker in the directory of the first argument. The second says what is done
 * with the scripts that follow: `after` runs the first to its end before the others, which run at the same time, and prints
 * how they ended, as JSON; `path` runs the first with the PATH that follows; `die` does the same until the second job runs, and dies with nothing forgotten, as a worker does
 * that is killed; `again` is the next worker, which prints how that job ends.
 */
const [, , dir = '', what, ...scripts] = process.argv;
const worker = new StrangerWorker(dir, []);
// A worker takes the processes of a key for its own, also those of another test.
const agent = basename(dir).replace('-', '');
const key = (n: number) => `${agent}.${n}.0.1` as const;
const [first = '', ...others] = scripts;
if (what === 'again') process.stdout.write(JSON.stringify([await worker.end(key(1))]));
else if (what === 'path')
  process.stdout.write(JSON.stringify([await worker.run(key(0), first, { env: { PATH: others.join(':') } })]));
else if (what === 'die') {
  worker.start(key(0), first);
  await worker.end(key(0));
  for (const [n, script] of others.entries()) worker.start(key(n + 1), script);
  while (worker.output(key(1)) === '') await new Promise((resume) => setTimeout(resume, 20));
  process.kill(process.pid, 'SIGKILL');
} else {
  const ends = [await worker.run(key(0), first)];
  for (const [n, script] of others.entries()) worker.start(key(n + 1), script);
  for (const n of others.keys()) ends.push(await worker.end(key(n + 1)));
  worker.take({ t: 'forget', keys: others.map((_, n) => key(n + 1)) });
  process.stdout.write(JSON.stringify(ends));
}
worker.close();
