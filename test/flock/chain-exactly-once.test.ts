import * as fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { AGREEMENT_KEYS, type Agreement, MOST_FURTHER } from '../../src/config/agreements.ts';
import { presets } from '../../src/config/table.ts';
import { incoming } from '../../src/flock/incoming.ts';
import { surelyOver } from '../../src/flock/late.ts';
import type { Going } from '../../src/flock/outgoing-job.ts';
import type { AttrTexts } from '../../src/job/attrs.ts';
import type { AttemptKey } from '../../src/job/ids.ts';
import { armCrash } from '../../src/util/crash-point.ts';
import { JUST_TRUE } from '../pool/just-true.ts';
import { PoolsInChain } from './pools-in-chain.ts';
import { JOURNAL_POINTS, seeThrough } from './see-through.ts';
import { going, TwoSides } from './two-sides.ts';

const KEY: AttemptKey = 'agent.1.0.1';
const SIZE = { cpus: 1, memoryMb: 1, diskKb: 1, gpus: 0 };
const AGREEMENT: Agreement = { ...presets(AGREEMENT_KEYS), name: 'p', keyFile: '/k', from: true };

afterEach(() => armCrash(undefined));

describe('a borrowed job that is granted to a slot of another partner', () => {
  const hop = (name: string) => ({ agent: name, name });
  const start = { t: 'start', key: KEY, claim: 'c', kind: 'k', size: SIZE, spec: JUST_TRUE, lease: 600 } as const;
  const grant = (passage: Going['passage'], ad: AttrTexts) => {
    const two = new TwoSides();
    two.borrower.start({ ...going('p', 'w'), passage }, { ...start, ad });
    return { two, job: two.borrower.get(KEY)?.job };
  };

  it('goes on with its path, and does not count as ours', () => {
    const passage = { path: [hop('h')], to: [hop('p')], from: hop('b') };
    const { two, job } = grant(passage, { FlockFrom: '"b"', Owner: '"u@b"' });
    expect(job).toMatchObject({ path: [hop('h'), hop('b')], user: 'u@b' });
    expect([two.borrower.cores('p'), two.borrower.cores()]).toEqual([1, 0]);
    expect(grant(undefined, { Owner: '"u"' }).two.borrower.cores()).toBe(1);
  });

  it('is given back unless it is meant for it', () => {
    for (const to of [[hop('q')], [hop('p'), hop('q')], []]) {
      const { two, job } = grant({ path: [], to, from: hop('b') }, { FlockFrom: '"b"' });
      expect([job, two.isGone(KEY)]).toEqual([undefined, true]);
    }
    expect(grant(undefined, { FlockFrom: '"b"' }).job).toBeUndefined();
  });
});

describe('a job that is passed on', () => {
  it('runs once in the last of three pools, and leaves nothing in any when it is forgotten', async () => {
    const chain = new PoolsInChain();
    await seeThrough(chain.first, chain, KEY);
    expect(chain.first.endOf(KEY)).toEqual({ kind: 'exited', code: 0 });
    expect(chain.pool.starts.get(KEY)).toBe(1);
    chain.first.forget(KEY);
    await chain.settle(6);
    const { first, last, middle } = chain;
    expect([...first.lender.jobs, ...last.borrower.jobs, ...last.lender.jobs]).toEqual([]);
    expect([...middle.jobs, ...chain.pool.jobs]).toEqual([]);
  });

  // The same points are passed by two gateways: first by one, then by the other.
  it.each(JOURNAL_POINTS.flatMap((point) => [[point, 1] as const, [point, 2] as const]))(
    'runs once although a gateway dies at %s, at the pass %i of it',
    async (point, pass) => {
      const chain = new PoolsInChain();
      armCrash(point, pass);
      await seeThrough(chain.first, chain, KEY);
      expect(chain.first.endOf(KEY)).toEqual({ kind: 'exited', code: 0 });
      chain.first.forget(KEY);
      await chain.settle(4);
      expect(chain.pool.starts.get(KEY)).toBe(1);
      if (!point.endsWith('-drop')) expect(chain.crashes).toBe(1);
    },
  );

  it('is taken for lost by its home only when it has ended in every pool on its way, also with the shortest lease', () => {
    for (const lease of [20, 60, 2400, 86_400])
      for (let further = 0; further <= MOST_FURTHER; further++) {
        const to = Array.from({ length: further }, (_, n) => ({ agent: `p${n}`, name: `p${n}` }));
        // Each pool but the last may have noticed the silence as late as it must, before the next cannot hear it either.
        let late = 0;
        let here = lease;
        for (let pool = 0; pool <= further; pool++) {
          const asked = {
            t: 'prepare',
            key: KEY,
            round: 1,
            user: 'u',
            ad: {},
            size: SIZE,
            lease: here,
            spec: JUST_TRUE,
          } as const;
          const made = incoming(asked, AGREEMENT, 'agent');
          if ('clause' in made) throw new Error(made.message);
          here = made.request.lease;
          late += pool === further ? 3 * here : here;
        }
        expect(late).toBeLessThanOrEqual(surelyOver({ lease, to }));
      }
  });

  it('runs once through any two crashes and cuts of any of the three', async () => {
    const disturbances = ['cut first', 'cut last', 'borrower', 'middle', 'lender', 'none'] as const;
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...JOURNAL_POINTS),
        fc.constantFrom(...JOURNAL_POINTS),
        fc.array(fc.constantFrom(...disturbances), { minLength: 2, maxLength: 8 }),
        async (one, other, all) => {
          const chain = new PoolsInChain();
          const left = [...all];
          armCrash(one);
          await seeThrough(chain.first, chain, KEY, () => {
            if (chain.crashes === 1) armCrash(other);
            const next = left.shift();
            if (next === 'cut first') chain.first.cut();
            else if (next === 'cut last') chain.last.cut();
            else if (next === 'borrower') chain.first.startBorrower();
            else if (next === 'middle') chain.killMiddle();
            else if (next === 'lender') chain.last.startLender();
          });
          armCrash(undefined);
          expect(chain.first.endOf(KEY)).toEqual({ kind: 'exited', code: 0 });
          expect(chain.pool.starts.get(KEY)).toBe(1);
          expect([...chain.first.faults, ...chain.last.faults]).toEqual([]);
        },
      ),
      { numRuns: 150 },
    );
  });
});
