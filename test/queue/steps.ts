import * as fc from 'fast-check';
import { LIFE, type LifeEvent, STATES } from '../../src/job/life.ts';
import type { ProcInput } from '../../src/queue/api.ts';

const EVENTS = [...new Set(STATES.flatMap((state) => Object.keys(LIFE[state].on)))] as LifeEvent[];
const MANAGERS = ['', 'frida', 'frida+/O=Grid/CN=F|r:i"d\\a'];
const SITES = ['', 'hpc', 'a:b|c'];

const text = fc
  .oneof(fc.string({ unit: 'grapheme', maxLength: 8 }), fc.constantFrom('/', '\\', '"', '\n', '|'))
  .map((s) => `"${s.toWellFormed()}"`);
const place = fc.record({ manager: fc.constantFrom(...MANAGERS), site: fc.constantFrom(...SITES) });
const proc: fc.Arbitrary<ProcInput> = fc.record(
  {
    attrs: fc
      .dictionary(fc.constantFrom('Args', 'Out', 'JobPrio'), text)
      .chain((attrs) =>
        fc
          .integer({ min: -3, max: 3 })
          .map((prio) => ('JobPrio' in attrs ? { ...attrs, JobPrio: String(prio) } : attrs)),
      ),
    state: fc.constantFrom('idle' as const, 'held' as const),
    site: fc.constantFrom(...SITES),
  },
  { requiredKeys: ['attrs'] },
);
/** Which job: a number, taken modulo how many there are. */
const pick = fc.nat({ max: 12 });
const sometimes = <T>(some: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 9, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: some });
const wish = fc.record(
  {
    pick,
    /** An event by number; most of the time one that the state accepts. */
    event: fc.oneof(
      { weight: 1, arbitrary: fc.constant(undefined) },
      { weight: 2, arbitrary: fc.constantFrom(...EVENTS) },
      { weight: 6, arbitrary: fc.nat({ max: 20 }) },
    ),
    from: sometimes(fc.constantFrom(...STATES)),
    attempt: sometimes(fc.nat({ max: 2 })),
    set: fc.dictionary(fc.constantFrom('Args', 'GridJobId', 'GryphusMoveTo'), fc.option(text)),
    prio: fc.integer({ min: -3, max: 3 }),
    route: sometimes(place),
    at: sometimes(place),
  },
  { requiredKeys: ['pick', 'event', 'from', 'attempt', 'route', 'at'] },
);

type Wish = typeof wish extends fc.Arbitrary<infer T> ? T : never;

export type Step =
  | { do: 'submit'; procs: ProcInput[]; place: { manager: string; site: string }; late: boolean; dies: boolean }
  | { do: 'materialize'; pick: number; procs: ProcInput[]; done: boolean; wrong: boolean }
  | { do: 'change'; wishes: Wish[]; as: 'user' | 'holder' | 'stale'; cut: boolean }
  | { do: 'retire'; picks: number[] }
  | { do: 'take-over' };

/** What a client may do with a queue. */
export const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('submit' as const),
      procs: fc.array(proc, { minLength: 1, maxLength: 6 }),
      place,
      late: fc.boolean(),
      dies: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('materialize' as const),
      pick,
      procs: fc.array(proc, { maxLength: 3 }),
      done: fc.boolean(),
      wrong: fc.boolean(),
    }),
  },
  {
    weight: 9,
    arbitrary: fc.record({
      do: fc.constant('change' as const),
      wishes: fc.array(wish, { minLength: 1, maxLength: 8 }),
      as: fc.constantFrom('user' as const, 'holder' as const, 'holder' as const, 'stale' as const),
      cut: fc.nat({ max: 5 }).map((n) => n === 0),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('retire' as const), picks: fc.array(pick, { minLength: 1, maxLength: 8 }) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('take-over' as const) }) },
);
