import {
  type ClassAd,
  evaluate,
  type Expr,
  groupByKind,
  Matchmaker,
  matchMany,
  parseExpr,
  printValue,
  significantAttributes,
} from '../../src/classad/api.ts';
import { EXPRESSIONS, JOB, pool, queue, SLOT } from './cases.ts';
import { walk } from './naive.ts';

const NOW = 1_700_200_000;

interface Rate {
  readonly name: string;
  /** Evaluations per second. */
  readonly compiled: number;
  readonly naive: number;
  readonly ratio: number;
}

interface Negotiation {
  readonly name: string;
  readonly jobs: number;
  readonly jobKinds: number;
  readonly slots: number;
  readonly slotKinds: number;
  readonly matches: number;
  /** Seconds: finding the significant attributes and grouping both sides; matching; both. */
  readonly grouping: number;
  readonly matching: number;
  readonly total: number;
}

function perSecond(run: () => unknown): number {
  for (let warm = 0; warm < 20_000; warm += 1) run();
  let best = 0;
  for (let round = 0; round < 5; round += 1) {
    const start = performance.now();
    let count = 0;
    let elapsed = 0;
    do {
      for (let batch = 0; batch < 1000; batch += 1) run();
      count += 1000;
      elapsed = (performance.now() - start) / 1000;
    } while (elapsed < 0.1);
    best = Math.max(best, count / elapsed);
  }
  return best;
}

function rate(name: string, expr: Expr, my: ClassAd, target: ClassAd): Rate {
  const matchmaker = new Matchmaker({ now: NOW });
  const [fast, slow] = [matchmaker.evaluate(expr, my, target), walk(expr, my, target, NOW)];
  const checked = evaluate(expr, { my, target, now: NOW });
  if (printValue(fast) !== printValue(slow) || printValue(fast) !== printValue(checked))
    throw new Error(`${name}: ${printValue(fast)}, ${printValue(slow)}, ${printValue(checked)}`);
  const compiled = perSecond(() => matchmaker.evaluate(expr, my, target));
  const naive = perSecond(() => walk(expr, my, target, NOW));
  return { name, compiled, naive, ratio: compiled / naive };
}

function seconds<T>(run: () => T): [T, number] {
  const start = performance.now();
  const result = run();
  return [result, (performance.now() - start) / 1000];
}

function negotiate(name: string, jobs: readonly ClassAd[], slots: readonly ClassAd[]): Negotiation {
  const [kinds, grouping] = seconds(() => {
    const names = significantAttributes(jobs, slots);
    return { jobs: groupByKind(jobs, (ad) => ad, names.left), slots: groupByKind(slots, (ad) => ad, names.right) };
  });
  const [result, matching] = seconds(() => matchMany(kinds.jobs, kinds.slots, { now: NOW }));
  return {
    name,
    jobs: jobs.length,
    jobKinds: kinds.jobs.length,
    slots: slots.length,
    slotKinds: kinds.slots.length,
    matches: result.matches.length,
    grouping,
    matching,
    total: grouping + matching,
  };
}

const rates = EXPRESSIONS.map(([name, side, text]) => {
  return side === 'job' ? rate(name, parseExpr(text), JOB, SLOT) : rate(name, parseExpr(text), SLOT, JOB);
});
const negotiations = [
  negotiate('a pool', queue(100_000, 200), pool(10_000, false)),
  negotiate('every slot different', queue(100_000, 200), pool(10_000, true)),
  negotiate('twice the jobs', queue(200_000, 200), pool(10_000, false)),
];
const geometricMean = Math.exp(rates.reduce((sum, each) => sum + Math.log(each.ratio), 0) / rates.length);

if (process.argv.includes('--json')) {
  process.stdout.write(`${JSON.stringify({ rates, geometricMean, negotiations }, null, 2)}\n`);
} else {
  process.stdout.write('evaluations a second        compiled      naive   ratio\n');
  for (const each of rates) {
    const columns = [each.compiled, each.naive]
      .map((value) => Math.round(value).toLocaleString('en').padStart(11))
      .join('');
    process.stdout.write(`${each.name.padEnd(24)}${columns}${each.ratio.toFixed(1).padStart(8)}\n`);
  }
  process.stdout.write(`geometric mean of the ratios ${geometricMean.toFixed(1)}\n\n`);
  process.stdout.write(
    'negotiation              jobs (kinds)     slots (kinds)   matches   grouping  matching     total\n',
  );
  for (const each of negotiations) {
    const sizes = `${each.jobs} (${each.jobKinds})`.padStart(16) + `${each.slots} (${each.slotKinds})`.padStart(18);
    const times = [each.grouping, each.matching, each.total]
      .map((value) => `${value.toFixed(2)} s`.padStart(10))
      .join('');
    process.stdout.write(`${each.name.padEnd(22)}${sizes}${String(each.matches).padStart(10)}${times}\n`);
  }
}
