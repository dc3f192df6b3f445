import { StrangerWorker } from './stranger-worker.ts';

/*
 * Run by an ordinary user: jobs of strangers of a worker in the directory of the first argument; the others are scripts. The
 * first runs to its end before the others begin, which run at the same time. Prints how they ended, as JSON.
 */
const [, , dir = '', first = '', ...others] = process.argv;
const worker = new StrangerWorker(dir, []);
const ends = [await worker.run('stranger.0.0.1', first)];
const key = (n: number) => `stranger.${n + 1}.0.1` as const;
for (const [n, script] of others.entries()) worker.start(key(n), script);
for (const n of others.keys()) ends.push(await worker.end(key(n)));
worker.take({ t: 'forget', keys: others.map((_, n) => key(n)) });
process.stdout.write(JSON.stringify(ends));
worker.close();
