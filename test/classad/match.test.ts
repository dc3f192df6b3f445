import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  analyze,
  attributesOf,
  ClassAd,
  evalBool,
  evalInt,
  evalString,
  evaluate,
  evaluateAttr,
  explain,
  groupByKind,
  Matchmaker,
  matchMany,
  parseAd,
  parseExpr,
  printAd,
  significantAttributes,
  symmetricMatch,
} from '../../src/classad/api.ts';

test('a chained ad sees its parent, shares it, and hides what it deletes', () => {
  const cluster = parseAd('[ Cmd = "/bin/true"; Memory = Base * 2; Base = 10 ]');
  const [one, two] = [new ClassAd().chainTo(cluster), new ClassAd().chainTo(cluster).set('Base', 50)];
  expect([evalInt(one, 'memory'), evalInt(two, 'MEMORY')]).toEqual([20, 100]);
  cluster.set('Base', 11);
  expect(evalInt(one, 'Memory')).toBe(22);
  expect(one.delete('cmd')).toBe(true);
  expect([one.size, evalString(one, 'Cmd'), evalString(two, 'Cmd')]).toEqual([1, undefined, '/bin/true']);
  expect(() => cluster.chainTo(one)).toThrow('cannot be chained to itself');
});

test('names keep their first spelling, and any case finds them', () => {
  const ad = ClassAd.fromValues({ JobStatus: 2 }).set('JOBSTATUS', 5).set('b', 1);
  expect(ad.keys()).toEqual(['JobStatus', 'b']);
  expect([evalInt(ad, 'jobstatus'), evalBool(ad, 'jobStatus'), evalString(ad, 'jobstatus')]).toEqual([
    5,
    true,
    undefined,
  ]);
});

test('numbers given by a program become integers or reals', () => {
  const ad = ClassAd.fromValues({ i: 3, r: 1.5, big: 2n ** 64n + 1n, far: 1e300 });
  expect(printAd(ad)).toBe('big = 1\nfar = 1E+300\ni = 3\nr = 1.5\n');
});

test('time and chance come from outside', () => {
  const options = { now: 1234, random: () => 0.75 };
  expect(evaluate(parseExpr('time() + CurrentTime'), { my: new ClassAd(), ...options })).toBe(2468);
  expect(evaluate(parseExpr('random(100)'), options)).toBe(Math.floor(0.75 * 2 ** 31) % 100);
  const userMap = (map: string, user: string) => (map === 'groups' && user === 'ann' ? 'physics, cms' : undefined);
  const answers = ['"ann"', '"ann", "CMS"', '"bob", "x", "none"', '"bob"'].map((args) => {
    return evaluate(parseExpr(`userMap("groups", ${args})`), { userMap });
  });
  expect(answers).toEqual(['physics, cms', 'cms', 'none', undefined]);
});

test('the two sides of a match, from either', () => {
  const job = parseAd('[ Requirements = TARGET.Memory > MY.Need && Os == "LINUX"; Need = 5; Rank = TARGET.Memory ]');
  const slot = parseAd('[ Requirements = TARGET.Need < 10; Memory = 8; Os = "linux" ]');
  expect(symmetricMatch(job, slot)).toBe(true);
  expect(new Matchmaker().rank(job, slot)).toBe(8);
  expect(evaluateAttr(job, 'Rank', { target: slot })).toBe(8);
  expect(symmetricMatch(job, parseAd('[ Memory = 8; Os = "LINUX" ]'))).toBe(false);
  expect(evaluate(parseExpr('TARGET.Missing'), { my: job, target: slot })).toBe(undefined);
});

test('what an expression depends on, through the attributes that it names', () => {
  const job = parseAd('[ RequestMemory = ImageSize / 1024; ImageSize = 9; A = 1 ]');
  const { my, target, dynamic } = attributesOf(parseExpr('TARGET.Memory >= RequestMemory && MY.A && Foo'), job);
  expect([[...my].sort(), [...target].sort(), dynamic]).toEqual([
    ['a', 'foo', 'imagesize', 'requestmemory'],
    ['foo', 'memory'],
    false,
  ]);
  expect(attributesOf(parseExpr('eval("x")')).dynamic).toBe(true);
});

const POLICIES = [
  'TARGET.Memory >= MY.Need',
  'Need <= Memory && Os == "LINUX"',
  'A || TARGET.B < Need',
  'ifThenElse(isUndefined(TARGET.C), true, TARGET.C > A)',
  'Derived && true',
  'eval("Memory") > 3',
  // One side against the other: if a value is not a plain number, the operator decides.
  ...['<', '<=', '==', '!=', '>=', '>', '=?=', '=!='].map((op) => `TARGET.Memory ${op} MY.Need`),
  'Need * 2 >= TARGET.Memory && TARGET.B != A',
  '(Need ?: 2) < (TARGET.Memory ?: 3) && Here != There',
  '!(TARGET.A == Need) || Need / (TARGET.B - 3) > 1',
];
const attribute = fc.constantFrom('Memory', 'Need', 'A', 'B', 'C');
const CONSTANTS = [
  '1',
  '3',
  '5',
  '3.0',
  '2.5',
  '"LINUX"',
  '"linux"',
  'true',
  'undefined',
  'error',
  '{ 3 }',
  '[ x = 3 ]',
];
const ODD = ['9007199254740993', '9007199254740992', '9007199254740992.0', 'real("nan")', 'relTime("3")', '1 / 0'];
/** To the other ad, to another attribute, and back to the first. */
const LED_ON = ['TARGET.B', 'Memory', 'Need', 'MY.A + 1', 'TARGET.Memory - 1'];
const constant = fc.constantFrom(...CONSTANTS, ...ODD, ...LED_ON);
const side = fc.record({
  attrs: fc.dictionary(attribute, constant, { maxKeys: 4 }),
  policy: fc.constantFrom(...POLICIES),
  rank: fc.constantFrom('TARGET.Memory', 'A', '0', 'TARGET.B * Need'),
  derived: fc.constantFrom('TARGET.A > 2', 'B =!= undefined', 'Need == 3'),
});

function build({
  attrs,
  policy,
  rank,
  derived,
}: {
  attrs: Record<string, string>;
  policy: string;
  rank: string;
  derived: string;
}) {
  const ad = new ClassAd();
  for (const [name, text] of Object.entries(attrs)) ad.setExpr(name, parseExpr(text));
  const names = { Requirements: policy, Rank: rank, Derived: derived, Os: '"LINUX"' };
  for (const [name, text] of Object.entries(names)) ad.setExpr(name, parseExpr(text));
  return ad;
}

/** The same, one pair at a time. */
function greedy(jobs: readonly ClassAd[], slots: readonly ClassAd[]): string[] {
  const matchmaker = new Matchmaker({ now: 1 });
  const taken = new Set<ClassAd>();
  return jobs.flatMap((job, number) => {
    const best = slots
      .map((slot, order) => ({ slot, order }))
      .filter(({ slot }) => !taken.has(slot) && symmetricMatch(job, slot, { now: 1 }))
      .map((each) => ({ ...each, rank: matchmaker.rank(job, each.slot), back: matchmaker.rank(each.slot, job) }))
      .sort((a, b) => b.rank - a.rank || b.back - a.back || a.order - b.order)[0];
    if (best === undefined) return [];
    taken.add(best.slot);
    return [`${number}:${best.order}`];
  });
}

test('matching by kinds gives what matching one by one gives', () => {
  fc.assert(
    fc.property(fc.array(side, { maxLength: 6 }), fc.array(side, { maxLength: 6 }), (left, right) => {
      const [jobs, slots] = [left.map(build), right.map(build)];
      const each = <T>(things: readonly T[], adOf: (thing: T) => ClassAd) =>
        things.map((thing) => ({ ad: adOf(thing), members: [thing] }));
      const { matches } = matchMany(
        each(jobs, (ad) => ad),
        each(slots, (ad) => ad),
        { now: 1 },
      );
      const pairs = matches.map(({ job, slot }) => `${jobs.indexOf(job)}:${slots.indexOf(slot)}`);
      expect(pairs).toEqual(greedy(jobs, slots));
      const names = significantAttributes(jobs, slots);
      const kinds = groupByKind(jobs, (ad) => ad, names.left);
      for (const { members } of kinds) {
        for (const slot of slots) {
          const answers = new Set(members.map((job) => symmetricMatch(job, slot, { now: 1 })));
          expect(answers.size).toBeLessThanOrEqual(1);
        }
      }
    }),
    { numRuns: 2000 },
  );
});

test('one more job of a known kind evaluates nothing more', () => {
  const slot = parseAd('[ Requirements = time() > 0 && TARGET.Need < 9; Memory = 8 ]');
  const job = parseAd('[ Requirements = TARGET.Memory > random(2) + MY.Need; Need = 5 ]');
  const drawn = (jobs: number): number => {
    let draws = 0;
    const random = () => {
      draws += 1;
      return 0.5;
    };
    const slots = Array.from({ length: 50 }, (_each, at) => ({ ad: slot, members: [at] }));
    const members = Array.from({ length: jobs }, (_each, at) => at);
    expect(matchMany([{ ad: job, members }], slots, { random }).matches).toHaveLength(Math.min(jobs, 50));
    return draws;
  };
  expect(drawn(1)).toBeGreaterThan(0);
  expect(drawn(5000)).toBe(drawn(1));
});

test('why: each condition, how many it turned away, and what to do', () => {
  const slots = [1024, 2048, 4096].map((memory) => {
    return parseAd(
      `[ Memory = ${memory}; Arch = "X86_64"; HasSingularity = true; START = TARGET.Owner == "ann"; Requirements = START ]`,
    );
  });
  const job = parseAd(`[ Owner = "bob"; RequestMemory = 8192;
    Requirements = (TARGET.Memory >= RequestMemory) && TARGET.Arch == "ARM" && TARGET.HasSingularty ]`);
  const analysis = analyze(job, slots);
  expect(analysis).toMatchObject({ candidates: 3, matching: 0, refusedByJob: 3, refuseJob: 0 });
  expect(analysis.clauses.map(({ text, met, suggestion }) => [text, met, suggestion])).toEqual([
    ['TARGET.Memory >= RequestMemory', 0, 'the most that any has is Memory = 4096: set request_memory (in MB) to that'],
    ['TARGET.Arch == "ARM"', 0, 'there is "X86_64" (3): ask for one of these'],
    ['TARGET.HasSingularty', 0, 'none has an attribute HasSingularty; did you mean HasSingularity?'],
  ]);
  expect(explain(analysis)).toContain("0 of 3 slots would run the job.\n3 are rejected by the job's Requirements:");
  const small = parseAd('[ Owner = "bob"; RequestMemory = 3000; Requirements = TARGET.Memory >= RequestMemory ]');
  expect(analyze(small, slots).clauses[0]).toMatchObject({ met: 1, unmet: 2, alone: 2 });
  expect(explain(analyze(small, slots), 'site')).toBe(`0 of 3 sites would run the job.
2 are rejected by the job's Requirements:
  TARGET.Memory >= RequestMemory
      rejects 2, 2 of them by this alone
      the most that any has is Memory = 4096: set request_memory (in MB) to that
1 would suit the job but reject it:
  TARGET.Owner == "ann"
      is not met at 1
`);
  expect(explain(analyze(small, []))).toBe('There is no slot to choose from.\n');
});
