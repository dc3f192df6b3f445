import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readAdLine } from '../job/ad-lines.ts';
import { isAttemptKey } from '../job/ids.ts';
import { isAlive, processIdentity } from '../util/process-identity.ts';
import { runDaemon } from '../util/run-daemon.ts';
import { HomeByRecords } from './home-by-records.ts';
import { IoProxy } from './io-proxy.ts';

/** How often it looks whether the job is over, milliseconds. */
const LOOK_MS = 100;
/** How long home may take to hear what an ended job said, milliseconds. After that, only what is on disk reaches it. */
const PATIENCE_MS = 300_000;
const DEAF_TO = ['SIGTERM', 'SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGXCPU'] as const;

/**
 * The proxy of one job of a batch system, started by its wrapper (src/jobmanager/io-proxy.sh) with the agent's directory at the
 * site, the attempt's key, and the wrapper's process number. It ends when the file `over` is there, or the wrapper is gone.
 */
async function main(root: string, key: string, wrapper: number): Promise<void> {
  if (!isAttemptKey(key)) throw new Error(`${key} is no attempt.`);
  const directory = join(root, 'jobs', key);
  const work = join(directory, 'work');
  const parent = processIdentity(wrapper);
  // What the batch system says to all processes of a job is not for its proxy, which ends after them.
  for (const signal of DEAF_TO) process.on(signal, () => undefined);
  let until = Number.POSITIVE_INFINITY;
  const isLate = () => performance.now() > until || !isAlive(parent);
  const home = new HomeByRecords({ root, key, isLate });
  const proxy = new IoProxy();
  await proxy.listen();
  const job = proxy.open({
    work,
    ad: adIn(join(work, '.job.ad')),
    remoteIo: false,
    ask: (question, bytes, offline) => home.ask(question, bytes, offline),
  });
  while (!existsSync(join(directory, 'over'))) {
    if (isLate()) return;
    await sleep(LOOK_MS);
  }
  until = performance.now() + PATIENCE_MS;
  await proxy.end(job);
}

function adIn(path: string): Record<string, string> {
  if (!existsSync(path)) return {};
  return Object.fromEntries(
    readFileSync(path, 'utf8')
      .split('\n')
      .flatMap((line) => {
        const attribute = readAdLine(line);
        return attribute === undefined ? [] : [attribute];
      }),
  );
}

const [root = '', key = '', wrapper = ''] = process.argv.slice(2);
runDaemon(main(root, key, Number(wrapper)));
