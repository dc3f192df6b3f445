import { execFile, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { htcondorPlace } from '../../scripts/htcondor.mjs';
import { formatJobId } from '../../src/job/ids.ts';
import type { UserLogEvent } from '../../src/user-log/event.ts';
import { parseUserLog } from '../../src/user-log/text.ts';
import { TestAgent, until } from '../agent/agent.ts';
import { processes } from '../agent/kill.ts';
import { attemptsAt, startTarget, type Target } from '../crash/sites.ts';
import { seeded } from '../seeded.ts';
import { skipWithoutSlurm } from '../sites/slurm.ts';
import { type Finding, judge } from './judge.ts';
import { strike, Watch } from './killer.ts';
import { PROGRAM, readLedger } from './ledger.ts';
import { plan, type Submit } from './plan.ts';

/**
 * These variables define a run: `GRYPHUS_SEED=7 GRYPHUS_CHAOS_JOBS=20000 GRYPHUS_CHAOS_MS=600000 npx vitest run
 * test/chaos/`.
 */
const SEED = Number(process.env['GRYPHUS_SEED'] ?? 20261123);
const JOBS = Number(process.env['GRYPHUS_CHAOS_JOBS'] ?? 400);
const CHAOS_MS = Number(process.env['GRYPHUS_CHAOS_MS'] ?? 30_000);
/** HTCondor's own, if it is installed. */
const READER = join(htcondorPlace(), 'bin/condor_check_userlogs');
/** The run's jobs and DAG managers; the pilot stays. */
const OURS = 'JobUniverse == 7 || regexp("job.sh$", Cmd)';
/** Time for all jobs to end after the last kill. */
const PATIENCE_MS = 300_000 + JOBS * 100;

describe.skipIf(skipWithoutSlurm())(`chaos (seed ${SEED})`, () => {
  let agent: TestAgent;
  let slurm: Target;
  const targets: Target[] = [];

  // Another try begins with another agent: what a failed one left would fail it too.
  beforeEach(async () => {
    targets.length = 0;
    agent = new TestAgent();
    agent.config('[gridmanager]\nrestart_max = "500ms"\nretry_max = "2s"\n[pool]\ncpus = 4\n');
    slurm = await startTarget('slurm, ssh', agent);
    const fork = (name: string, url: string, scratch: string) =>
      agent.site(name, { url, batch: 'fork', more: `scratch = "${scratch}"\n[limits]\nrunning = 4\n` });
    fork('there', slurm.sshd?.url ?? '', '~/fork');
    fork('local', 'local', `${agent.dir}/local`);
    targets.push(
      slurm,
      { ...slurm, siteDir: join(slurm.sshd?.home ?? '', 'fork/there') },
      { ...slurm, siteDir: join(agent.dir, 'local/local') },
    );
    await agent.ok('up');
    agent.file('job.sh', PROGRAM, 0o755);
    await agent.ok('glidein', 'start', '--site', 'cluster', '--cores', '2', '--walltime', '2h');
  }, 120_000);
  afterEach(async () => {
    await agent.end();
    await slurm.stop();
  });

  it(
    `${JOBS} jobs: none lost, none twice at once, no false end, no event missing, nothing left`,
    async () => {
      const random = seeded(SEED);
      const ledger = agent.file('ledger', '');
      const watch = new Watch(agent, slurm);
      const watching = setInterval(() => watch.look(), 250);
      const administrating = setInterval(() => backInService(slurm), 2000);
      const accepted = new Set<string>();
      const removed = new Set<string>();
      const story: string[] = [];
      const until_ = Date.now() + CHAOS_MS;
      const killing = (async () => {
        while (Date.now() < until_) {
          // A daemon of the site that takes longer to come back is one more fault.
          story.push(await strike(agent, slurm, watch, random).catch(() => 'a slow restart'));
          await new Promise((resume) => setTimeout(resume, 200 + random() * 1500));
        }
      })();
      const users = seeded(SEED + 1);
      const submits = plan(seeded(SEED + 2), JOBS, ledger);
      const annoying = (async () => {
        while (Date.now() < until_) {
          await annoy(users, [...accepted], removed, story);
          await new Promise((resume) => setTimeout(resume, 500));
        }
      })();
      for (const submit of submits) for (const id of await submitted(submit)) accepted.add(id);
      await annoying;
      await killing;
      await until(
        'slurmctld',
        () =>
          slurm.slurm?.restartCtld().then(
            () => true,
            () => undefined,
          ),
        120_000,
      );
      for (const node of [1, 2]) await slurm.slurm?.restartSlurmd(node);
      await until('the daemons', async () => (await agent.run(['up'])).code === 0 || undefined, 120_000);
      await until('all to end', ended, PATIENCE_MS).catch(async (thrown: unknown) => {
        throw new Error(`${story.join(', ')}\n${await whatIsLeft()}`, { cause: thrown });
      });
      clearInterval(watching);
      clearInterval(administrating);

      const findings = await judgeAll(
        ledger,
        accepted,
        removed,
        watch,
        submits.filter(({ command }) => command === 'dag').length,
      );
      console.log(`chaos, seed ${SEED}: ${accepted.size} jobs, ${story.length} strikes; ${tally(story)}`);
      expect({ findings, story: findings.length === 0 ? '' : story.join(', ') }).toEqual({ findings: [], story: '' });
      // It fails if the pilot is already gone, as a killed one is.
      await agent.run(['glidein', 'stop', '--all']);
      for (const target of targets)
        await until(`${target.siteDir} to be empty`, () => attemptsAt(target).length === 0 || undefined);
      await agent.ok('down');
      await until('all processes to be gone', () => processes(agent).length === 0 || undefined).catch(
        (thrown: unknown) => {
          throw new Error(`left: ${JSON.stringify(processes(agent))}`, { cause: thrown });
        },
      );
    },
    CHAOS_MS + PATIENCE_MS + 300_000,
  );

  /**
   * Submits repeatedly until the command reports what it created; returns the ids. A killed command may have created a
   * cluster that is not known here.
   */
  async function submitted({ command, file, text, beside = {}, jobs }: Submit): Promise<string[]> {
    for (const [name, content] of Object.entries(beside)) agent.file(name, content);
    agent.file(file, text);
    for (;;) {
      const args = command === 'dag' ? ['dag', 'submit', '--force', file] : ['submit', '--terse', file];
      const { code, stdout } = await agent.run(args);
      if (code === 0 && command === 'dag') return [];
      const cluster = /^(\d+)\.\d+/.exec(stdout)?.[1];
      if (code === 0 && cluster !== undefined) return Array.from({ length: jobs }, (_, proc) => `${cluster}.${proc}`);
      await new Promise((resume) => setTimeout(resume, 200));
    }
  }

  /** What users do to running jobs. */
  async function annoy(
    random: () => number,
    ids: readonly string[],
    removed: Set<string>,
    story: string[],
  ): Promise<void> {
    const id = ids[Math.floor(random() * ids.length)];
    if (id === undefined) return;
    const dice = random();
    if (dice < 0.1) {
      removed.add(id);
      await agent.run(['rm', id]);
      story.push(`rm ${id}`);
    } else if (dice < 0.5) {
      await agent.run(['hold', id]);
      await agent.run(['release', id]);
      story.push(`hold ${id}`);
    } else {
      await agent.run(['vacate', id]);
      story.push(`vacate ${id}`);
    }
  }

  /** The jobs that did not end, and what the agent says of a few of them. */
  async function whatIsLeft(): Promise<string> {
    const { stdout } = await agent.run(['q', '--nobatch', '--constraint', OURS]);
    const ids = [...stdout.matchAll(/^ *(\d+\.\d+) /gm)].flatMap(([, id]) => id ?? []).slice(0, 3);
    const why = await Promise.all(ids.map(async (id) => (await agent.run(['why', id])).stdout));
    return [stdout.slice(-4000), ...why, (await agent.run(['status', '--pool'])).stdout].join('\n');
  }

  /** Releases held jobs, whatever held them, until the queue is empty. */
  async function ended(): Promise<true | undefined> {
    const began = Date.now();
    const { stdout, code } = await agent.run(['q', '--json', '--constraint', OURS, '--attributes', 'JobStatus']);
    if (code !== 0) return undefined;
    const jobs = stdout.trim() === '' ? [] : (JSON.parse(stdout) as { JobStatus: number }[]);
    if (jobs.some(({ JobStatus }) => JobStatus === 5)) await agent.run(['release', '--constraint', OURS]);
    // A look at thousands of jobs takes longer than at a few, and the jobs need the machine.
    await new Promise((resume) => setTimeout(resume, 500 + 5 * (Date.now() - began)));
    return jobs.length === 0 || undefined;
  }

  async function judgeAll(
    ledger: string,
    accepted: ReadonlySet<string>,
    removed: ReadonlySet<string>,
    watch: Watch,
    dags: number,
  ): Promise<Finding[]> {
    const runs = readLedger(readFileSync(ledger, 'utf8'));
    const history = JSON.parse(await agent.ok('history', '--json')) as Record<string, unknown>[];
    const ads = new Map(history.map((ad) => [`${String(ad['ClusterId'])}.${String(ad['ProcId'])}`, ad]));
    const events = new Map<string, UserLogEvent[]>();
    for (const name of readdirSync(agent.work).filter((file) => /^[cd]\d+\.log$/.test(file)))
      for (const event of parseUserLog(agent.read(name)).events) {
        const id = formatJobId(event);
        events.set(id, [...(events.get(id) ?? []), event]);
      }
    const general: Finding[] = [];
    if (existsSync(READER))
      for (const name of readdirSync(agent.work).filter((file) => /^c\d+\.log$/.test(file))) {
        const { status, stdout } = spawnSync(READER, [join(agent.work, name)], { encoding: 'utf8' });
        if (status !== 0) general.push({ fault: 'event', id: name, why: stdout.slice(-1000) });
      }
    if (ads.size < history.length)
      general.push({ fault: 'event', id: 'history', why: `${history.length - ads.size} jobs stand in it twice` });
    const managers = history.filter((ad) => ad['JobUniverse'] === 7);
    if (managers.length < dags) general.push({ fault: 'lost', id: 'dags', why: `${managers.length} of ${dags}` });
    for (const ad of managers.filter((one) => one['JobStatus'] !== 4 || one['ExitCode'] !== 0))
      general.push({
        fault: 'false-end',
        id: `dag ${String(ad['ClusterId'])}`,
        why: `exit ${String(ad['ExitCode'])}, status ${String(ad['JobStatus'])}`,
      });
    const own = (ad: Record<string, unknown>) => String(ad['Cmd']).endsWith('/job.sh');
    const ids = new Set([...accepted, ...[...ads].filter(([, ad]) => own(ad)).map(([id]) => id)]);
    const jobs = [...ids].flatMap((id) => {
      const path = join(agent.work, `out.${id}`);
      const output = existsSync(path) ? readFileSync(path, 'utf8') : undefined;
      const job = {
        id,
        accepted: accepted.has(id),
        removed: removed.has(id),
        ad: ads.get(id),
        runs: runs.get(id) ?? [],
        events: events.get(id) ?? [],
        output,
      };
      return judge(job, watch);
    });
    return [...general, ...jobs];
  }
});

/**
 * A killed slurmctld has lost up to 5 s of its state and assigns job ids a second time: slurmd drains its node with
 * "Duplicate jobid" until an administrator intervenes.
 */
function backInService({ slurm }: Target): void {
  if (slurm === undefined) return;
  const nodes = ['update', 'nodename=n[1-2]', 'state=resume'];
  // It fails for nodes that need no resume, and if the controller is down.
  execFile('scontrol', nodes, { env: { ...process.env, ...slurm.env }, timeout: 5000 }, () => undefined);
}

function tally(story: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const one of story) {
    const what = one.replace(/ \d.*/, '');
    counts.set(what, (counts.get(what) ?? 0) + 1);
  }
  return [...counts].map(([what, n]) => `${what} ${n}`).join(', ');
}
