import type { AttemptKey } from '../../src/job/ids.ts';
import type { CrashPoint } from '../../src/util/crash-point.ts';
import type { LendersPool, TwoSides } from './two-sides.ts';

const BORROWER = ['accept', 'commit', 'end', 'drop', 'forget'] as const;
const LENDER = ['prepare', 'commit', 'end', 'forget'] as const;

/** Before and after each entry of the gateways' journals. */
export const JOURNAL_POINTS: readonly CrashPoint[] = [
  ...BORROWER.flatMap((step) => [`flock.before-${step}`, `flock.saved-${step}`] as const),
  ...LENDER.flatMap((step) => [`flock-lender.before-${step}`, `flock-lender.saved-${step}`] as const),
];

/** The gateways on the way of a job, and the pool that runs it. */
interface Gateways {
  readonly pool: Pick<LendersPool, 'start' | 'end'>;
  connect(): void;
  settle(turns: number): Promise<void>;
}

/**
 * What the central manager of the job's home does with one attempt until it has ended: grants it, and again if it has not arrived or is
 * given back.
 */
export async function seeThrough(
  home: Pick<TwoSides, 'endOf' | 'holds' | 'said' | 'grant'>,
  gateways: Gateways,
  key: AttemptKey,
  disturb: () => void = () => undefined,
): Promise<void> {
  for (let turn = 0; turn < 40 && !home.endOf(key); turn++) {
    if (!home.holds(key)) {
      home.said.splice(0);
      home.grant(key);
    }
    await gateways.settle(4);
    disturb();
    gateways.connect();
    await gateways.settle(6);
    gateways.pool.start(key);
    await gateways.settle(2);
    disturb();
    gateways.pool.end(key);
    gateways.connect();
    await gateways.settle(6);
  }
}
