import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { loadPaths } from '../../src/config/paths.ts';
import { poolPlaces } from '../../src/pool/host/places.ts';
import { Tokens } from '../../src/pool/wire/tokens.ts';
import { TestAgent, until } from '../../test/agent/agent.ts';
import { type Ledger, SimWorker } from './sim-worker.ts';

/*
 * One agent with many simulated workers, which speak the real protocol in TLS, and many sites with one long job each:
 * seconds of processor time in a minute in which nothing happens, and in one in which jobs end at a given rate.
 */

const PARTS: readonly (readonly [string, RegExp])[] = [
  ['Scheduler', /scheduler.main\.js/],
  ['GridManager', /gridmanager.main\.js/],
  ['central manager', /central-manager-main\.js/],
  ['Redis', /redis-server/],
  ['JobManagers at the sites', /jobmanager\.sh/],
];

/** How many workers connect at once. */
const AT_ONCE = 200;
/** The last jobs of the busy time are submitted so many seconds before its end. */
const LAST_SECONDS = 5;

export async function main(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      workers: { type: 'string', default: '2000' },
      sites: { type: 'string', default: '200' },
      'a-minute': { type: 'string', default: '1000' },
      minutes: { type: 'string', default: '1' },
      settle: { type: 'string', default: '90' },
      managers: { type: 'string', default: '1' },
      json: { type: 'boolean', default: false },
    },
  });
  const [workers, sites, rate, minutes, settle, managers] = [
    values.workers,
    values.sites,
    values['a-minute'],
    values.minutes,
    values.settle,
    values.managers,
  ].map(Number);
  for (const number of [workers, sites, rate, minutes, settle, managers])
    if (number === undefined || !Number.isFinite(number) || number < 0)
      throw new Error('numbers, please: see idle.mjs');
  const agent = new TestAgent();
  agent.config('[pool]\nlocal_worker = false\n');
  const ledger: Ledger = { starts: new Map(), ends: new Map() };
  const hired: SimWorker[] = [];
  try {
    // Each credential has a GridManager.
    const accounts = managers === 1 ? [] : Array.from({ length: managers ?? 0 }, (_, i) => `account${i}`);
    for (const account of accounts) useAccount(agent, account);
    for (let i = 0; i < (sites ?? 0); i++) {
      const account = accounts[i % accounts.length];
      const more = account === undefined ? {} : { more: `credential = "${account}"\n` };
      agent.site(`s${i}`, { url: 'local', batch: 'fork', ...more });
    }
    await agent.ok('up');
    if (sites !== 0)
      await agent.submit(
        `universe = grid\ngrid_resource = batch fork s$(Process)\nexecutable = /bin/sleep\ntransfer_executable = false\narguments = 100000\nqueue ${sites}\n`,
      );
    // The central manager runs while the pool has work. No machine has that much.
    await agent.submit('executable = /bin/true\nrequest_memory = 90T\nqueue\n');
    const places = poolPlaces(loadPaths({ GRYPHUS_HOME: agent.home }));
    const tokens = new Tokens(places.dir);
    for (let i = 0; i < (workers ?? 0); i++) {
      const token = tokens.issue({ site: 'simulated', local: false });
      hired.push(new SimWorker(token, `w${i}`, places.homeSocket, ledger, () => 1));
      const some = hired.slice(-AT_ONCE);
      if (i % AT_ONCE === AT_ONCE - 1)
        await until('workers to connect', () => some.every(({ up }) => up) || undefined, 300_000);
    }
    say(`${workers} workers are connected`);
    const running = async () =>
      (JSON.parse(await agent.ok('q', '--constraint', 'JobStatus == 2', '--json')) as unknown[]).length === sites ||
      undefined;
    await until('the jobs of the sites to run', running, 600_000);
    say(`${sites} sites run a job`);
    // What is asked more rarely the longer nothing happens has become rare.
    await sleep(1000 * (settle ?? 0));
    const idle = await spent(agent, minutes ?? 1, async () => undefined);
    let ended = 0;
    const busy = await spent(agent, minutes ?? 1, async (left) => {
      const before = ledger.ends.size;
      const total = Math.round((rate ?? 0) * (minutes ?? 1));
      const batches = Math.min(total, Math.ceil(12 * (minutes ?? 1)));
      const begun = left();
      for (let i = 0, given = 0; i < batches; i++) {
        await sleep(1000 * Math.max(0, left() - (begun - (i / batches) * (begun - LAST_SECONDS))));
        const some = Math.round(((i + 1) / batches) * total) - given;
        await agent.submit(`executable = /bin/true\nshould_transfer_files = YES\nqueue ${some}\n`);
        given += some;
      }
      await sleep(1000 * Math.max(0, left()));
      ended = ledger.ends.size - before;
    });
    const result = { workers, sites, ended, idle, busy, mb: memory(agent) };
    if (values.json) console.log(JSON.stringify(result, undefined, 2));
    else {
      console.log('| process | idle: seconds a minute | busy: seconds a minute | MB |\n| --- | ---: | ---: | ---: |');
      for (const [part] of PARTS) {
        const s = (of: Readonly<Record<string, number>>) => ((of[part] ?? 0) / (minutes ?? 1)).toFixed(2);
        console.log(`| ${part} | ${s(idle)} | ${s(busy)} | ${(result.mb[part] ?? 0).toFixed(0)} |`);
      }
      console.log(`${ended} jobs ended in the busy time.`);
    }
  } finally {
    for (const worker of hired) worker.die();
    await agent.ok('rm', '--all').catch(() => undefined);
    await agent.end();
  }
}

function useAccount(agent: TestAgent, name: string): void {
  const dir = join(agent.home, 'credentials');
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  writeFileSync(join(dir, `${name}.toml`), 'kind = "account"\nuntil = 2100-01-01\n', { mode: 0o600 });
}

/** Progress, beside the table. */
function say(what: string): void {
  process.stderr.write(`${what} after ${Math.round(performance.now() / 1000)} s\n`);
}

/** Seconds of processor time of each part while `work` runs, which is told how many seconds are left. */
async function spent(
  agent: TestAgent,
  minutes: number,
  work: (left: () => number) => Promise<void>,
): Promise<Record<string, number>> {
  const before = times(agent);
  const end = performance.now() + 60_000 * minutes;
  await work(() => (end - performance.now()) / 1000);
  await sleep(Math.max(0, end - performance.now()));
  const after = times(agent);
  return Object.fromEntries(PARTS.map(([part]) => [part, (after[part] ?? 0) - (before[part] ?? 0)]));
}

function times(agent: TestAgent): Record<string, number> {
  return sums(agent, (pid) => {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // With its ended children: a site's shell starts programs.
    return fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0) / 100;
  });
}

function memory(agent: TestAgent): Record<string, number> {
  return sums(agent, (pid) => Number(/^VmRSS:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1000);
}

/** Of each part of this agent. */
function sums(agent: TestAgent, of: (pid: string) => number): Record<string, number> {
  const all: Record<string, number> = {};
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      const part = PARTS.find(([, pattern]) => pattern.test(command))?.[0];
      const ours = `${command}${readFileSync(`/proc/${pid}/environ`, 'utf8')}`.includes(agent.dir);
      if (part !== undefined && ours) all[part] = (all[part] ?? 0) + of(pid);
    } catch {
      // It has ended, or is somebody else's.
    }
  }
  return all;
}
