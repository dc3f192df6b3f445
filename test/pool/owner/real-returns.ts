import { appendFileSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { killMatching } from '../../agent/kill.ts';
import { seeded } from '../../seeded.ts';
import { type Stations } from './stations.ts';
import { ticksOf } from './ticks.ts';

/*
 * Owners who come back at random to a machine with real jobs, while its worker and the central manager are killed at
 * random. The jobs keep their own account in a ledger, in which nothing of Gryphus has a part.
 */

/** Counts to its second argument in steps of 50 ms; saves the count when it is asked to end. Its third is the ledger. */
export const COUNTING = `#!/bin/sh
exec 9>>"$3.$1.lock"
flock -n 9 || echo "double $1" >>"$3"
n=0
[ -e state ] && n=$(cat state)
echo "start $1 $n" >>"$3"
trap 'echo $n >state; echo "saved $1 $n" >>"$3"; exit 0' TERM
while [ $n -lt $2 ]; do n=$((n + 1)); sleep 0.05 9>&-; done
trap '' TERM
echo "end $1 $n" >>"$3"
`;

/** Jobs that wait or run at any time. */
const JOBS = 4;
/** The owner of a machine whose worker lives is obeyed within this time. Milliseconds. */
const SOON = 3000;
/** Keys that come faster than this are one stay of the owner; less than the policy's StartIdleTime. Milliseconds. */
const KEYS_MS = 800;

export interface Counted {
  returns: number;
  suspended: number;
  vacated: number;
  workerDeaths: number;
  managerDeaths: number;
  jobs: number;
}

export class RealReturns {
  readonly wrong: string[] = [];
  readonly counted: Counted = { returns: 0, suspended: 0, vacated: 0, workerDeaths: 0, managerDeaths: 0, jobs: 0 };
  readonly #stations: Stations;
  readonly #press: () => void;
  readonly #random: () => number;
  readonly #ledger: string;
  readonly #lengths = new Map<string, number>();
  readonly #clusters: number[] = [];

  constructor(stations: Stations, press: () => void, seed: number) {
    this.#stations = stations;
    this.#press = press;
    this.#random = seeded(seed);
    this.#ledger = join(stations.work, 'ledger');
    appendFileSync(this.#ledger, '');
    stations.file('counting.sh', COUNTING, 0o755);
  }

  /** So many returns; then it waits for the jobs to end. */
  async run(returns: number): Promise<void> {
    while (this.counted.returns < returns) {
      await this.#feed();
      await delay(this.#random() * 2000);
      await this.#return();
    }
    const jobs = this.#clusters.map(String);
    await this.#stations.ok('wait', '--no-outcome', '--timeout', '120', ...jobs);
    this.#judge();
  }

  async #feed(): Promise<void> {
    const ended = this.#lines().filter(([what]) => what === 'end').length;
    if (this.#lengths.size - ended >= JOBS) return;
    const words: string[] = [];
    for (let n = 0; n < 2 * JOBS; n++) {
      const name = `j${this.#lengths.size}`;
      const length = 60 + Math.floor(this.#random() * 200);
      this.#lengths.set(name, length);
      words.push(`${name} ${length} ${this.#ledger}`);
    }
    const text = `executable = counting.sh\nrank = TARGET.GryphusSite == "local"\nshould_transfer_files = YES\nwhen_to_transfer_output = ON_EXIT_OR_EVICT\nqueue arguments from (\n${words.join('\n')}\n)\n`;
    this.#clusters.push(await this.#stations.submit(text));
    this.counted.jobs += words.length;
  }

  /** One return: keys for some time, and deaths at random moments of it. */
  async #return(): Promise<void> {
    this.counted.returns += 1;
    const first = Date.now();
    const lasts = 500 + this.#random() * 6000;
    const dies = this.#random();
    const at = first + this.#random() * lasts;
    let death = dies < 0.35 ? 'worker.mjs' : dies < 0.5 ? 'central-manager-main' : undefined;
    const still = new Map<string, number>();
    // On a loaded machine a key may come so late that the policy has taken the owner for gone, and rightly.
    const stretches: { readonly from: number; to: number }[] = [];
    let last = first;
    while (Date.now() - first < lasts) {
      this.#press();
      last = Date.now();
      const stretch = stretches.at(-1);
      if (stretch && last - stretch.to < KEYS_MS) stretch.to = last;
      else stretches.push({ from: last, to: last });
      if (death !== undefined && last > at) {
        killMatching(death, this.#stations);
        this.counted[death === 'worker.mjs' ? 'workerDeaths' : 'managerDeaths'] += 1;
        death = undefined;
      }
      for (const [key, moves] of this.#moves()) {
        const now = moves.at(-1);
        if (now?.to !== 'suspended') {
          still.delete(key);
          continue;
        }
        // What is suspended uses nothing at all, whoever died meanwhile.
        const ticks = ticksOf(key);
        const before = still.get(key);
        if (before !== undefined && ticks > before && this.#moves().get(key)?.at(-1)?.to === 'suspended')
          this.wrong.push(`${key} used ${ticks - before} ticks while suspended`);
        still.set(key, ticks);
      }
      await delay(150);
    }
    const underHands = (at: number) => stretches.some(({ from, to }) => at > from + SOON && at <= to);
    for (const { key, at: started } of this.#started()) if (underHands(started)) this.wrong.push(`${key} was started`);
    for (const [key, moves] of this.#moves()) {
      for (const { to, at: moved } of moves) {
        if (to === 'busy' && underHands(moved)) this.wrong.push(`${key} was resumed`);
        if (moved < first) continue;
        if (to === 'suspended') this.counted.suspended += 1;
        if (to === 'vacating') this.counted.vacated += 1;
      }
    }
  }

  /** The attempts at the owner's machine, and when their directories were made. */
  #started(): { readonly key: string; readonly at: number }[] {
    const dir = join(this.#stations.home, 'state/pool/worker/jobs');
    return readdirSync(dir).flatMap((key) => {
      const found = statSync(join(dir, key), { throwIfNoEntry: false });
      return found ? [{ key, at: found.birthtimeMs }] : [];
    });
  }

  #moves(): ReturnType<Stations['allMoves']> {
    return this.#stations.allMoves();
  }

  #lines(): string[][] {
    return readFileSync(this.#ledger, 'utf8')
      .trim()
      .split('\n')
      .map((line) => line.split(' '));
  }

  #judge(): void {
    for (const [job, length] of this.#lengths) {
      const lines = this.#lines().filter(([, name]) => name === job);
      const of = (what: string) => lines.flatMap(([kind, , n]) => (kind === what ? [Number(n)] : []));
      if (of('end').join() !== String(length)) this.wrong.push(`${job} ended at ${of('end').join() || 'nothing'}`);
      if (of('double').length > 0) this.wrong.push(`${job} ran twice at once`);
      // Each start goes on where the one before stopped.
      if (of('start').join() !== [0, ...of('saved')].join())
        this.wrong.push(`${job} started at ${of('start').join()} and saved ${of('saved').join()}`);
    }
  }
}
