import { TestAgent, until } from '../../agent/agent.ts';
import { ticksOf } from './ticks.ts';

type Ad = Record<string, unknown>;

interface Move {
  readonly to: string;
  readonly at: number;
}

const SOON = 60_000;

/** An agent with its own machine, which has an owner, and a second one, whose owner is never there: a pilot's. */
export class Stations extends TestAgent {
  #scripts = 0;

  /** `pool`: the policy of the first, which has so many cores. */
  async open(pool: string, cpus = 1): Promise<void> {
    this.policy(pool, cpus);
    this.site('other', {
      url: 'local',
      batch: 'fork',
      more: `scratch = "${this.dir}/scratch"\n[limits]\npoll_min = "1s"\n`,
    });
    await this.ok('up');
    await this.ok('glidein', 'start', '--site', 'other', '-n', '1', '--walltime', '1h', '--cores', '1');
    await until('both stations', async () => {
      const sites = (await this.slots()).map((ad) => ad['GryphusSite']);
      return (sites.includes('local') && sites.includes('other')) || undefined;
    });
  }

  /** Sets the policy of the first machine, which is in force within a second. */
  policy(pool: string, cpus = 1): void {
    this.config(
      `[gridmanager]\nretry_max = "1s"\n[glidein]\nnode = "own"\ndisk = "10M"\nidle = "1h"\n[pool]\ncpus = ${cpus}\npolling_interval = "1s"\n${pool}`,
    );
  }

  async close(): Promise<void> {
    await this.run(['rm', '--all']);
    await this.run(['glidein', 'stop', '--all']);
    await this.end();
  }

  async slots(): Promise<Ad[]> {
    const { stdout } = await this.run(['status', '--pool', '--json']);
    return stdout.trim() === '' ? [] : (JSON.parse(stdout) as Ad[]);
  }

  /** The slot in which a job runs now, if any. */
  async slotOf(cluster: number): Promise<Ad | undefined> {
    return (await this.slots()).find((ad) => ad['JobId'] === `${cluster}.0`);
  }

  async status(cluster: number): Promise<unknown> {
    return (await this.ads(cluster))[0]?.['JobStatus'];
  }

  /** A job that prefers the first machine, which takes jobs, and runs forever. */
  async forever(text: string): Promise<number> {
    await until('the machine to be free', async () => {
      const local = (await this.slots()).find((ad) => ad['GryphusSite'] === 'local');
      return (local?.['State'] === 'Unclaimed' && local['START'] !== false) || undefined;
    });
    const name = `forever${(this.#scripts += 1)}.sh`;
    this.file(name, `#!/bin/sh\n${text}\n`, 0o755);
    return this.submit(
      `executable = ${name}\nrank = TARGET.GryphusSite == "local"\nlog = job.log\njob_max_vacate_time = 5\nqueue\n`,
    );
  }

  /** The attempt's key, once the job runs at this site. */
  async runsAt(cluster: number, site: string): Promise<string> {
    return until(
      `${cluster} to run at ${site}`,
      async () => {
        const ad = await this.slotOf(cluster);
        const key = ad?.['GryphusSite'] === site && ad['Activity'] === 'Busy' ? ad['GryphusKey'] : undefined;
        return typeof key === 'string' && ticksOf(key) > 0 ? key : undefined;
      },
      SOON,
    ).catch(async (thrown: unknown) => {
      const why = (await this.run(['why', String(cluster)])).stdout;
      throw new Error(`${why}\n${this.log('pool-worker.log').slice(-2000)}`, { cause: thrown });
    });
  }

  /** What the machine of the owner did to each attempt, by the worker's log, and when (milliseconds). */
  allMoves(): ReadonlyMap<string, readonly Move[]> {
    const moves = new Map<string, Move[]>();
    for (const line of this.log('pool-worker.log').split('\n')) {
      const [, at = '', key, to] = /^(\S+) (\S+\.\d+): \w+ → (\w+)$/.exec(line) ?? [];
      if (key === undefined || to === undefined) continue;
      moves.set(key, [...(moves.get(key) ?? []), { to, at: Date.parse(at) }]);
    }
    return moves;
  }

  movesOf(key: string): readonly Move[] {
    return this.allMoves().get(key) ?? [];
  }

  /** When an attempt came into this state. Milliseconds. */
  async moved(key: string, to: string): Promise<number> {
    return until(`${key} to be ${to}`, () => this.movesOf(key).find((move) => move.to === to)?.at, SOON);
  }
}
