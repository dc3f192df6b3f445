import { describe, expect, it } from 'vitest';
import { type Answer, answer, type CorpusCase, readCorpus } from './corpus.ts';
import { DIFFERENCES, UNRECORDED } from './differences.ts';

const cases = readCorpus();
const isRandom = (test: CorpusCase): boolean => test.flags?.includes('random') === true;

function adDifferences(test: CorpusCase, ours: Answer): string[] {
  const ignored = new Set([
    ...UNRECORDED,
    ...(DIFFERENCES[test.name]?.ignore ?? []),
    ...(isRandom(test) ? ['Args'] : []),
  ]);
  return test.ads.flatMap((theirs, i) => {
    const mine = ours.ads[i] ?? {};
    const names = [...new Set([...Object.keys(theirs), ...Object.keys(mine)])].filter((name) => !ignored.has(name));
    return names
      .filter((name) => mine[name] !== theirs[name])
      .map((name) => `${test.name} [${i}] ${name}: ${mine[name]} instead of ${theirs[name]}`);
  });
}

/** What a user would see that differs from condor_submit, one line each. */
async function differences(test: CorpusCase): Promise<string[]> {
  const ours = await answer(test);
  const refused = DIFFERENCES[test.name]?.error;
  if (refused) return ours.exit === 1 && refused.test(ours.message) ? [] : [`${test.name}: ${ours.message}`];
  if ((ours.exit === 0) !== (test.exit === 0)) return [`${test.name}: exit ${ours.exit}: ${ours.message}`];
  if (ours.exit !== 0) return [];
  const jobs = test.jobs ?? test.ads.length;
  if (ours.jobs !== jobs) return [`${test.name}: ${ours.jobs} jobs instead of ${jobs}`];
  return ours.late ? [] : adDifferences(test, ours);
}

describe('what condor_submit 25.14 answered', () => {
  const categories = [...new Set(cases.map(({ name }) => name.split('/')[0] ?? ''))];

  it.each(categories)('%s: the same jobs with the same attributes', async (category) => {
    const own = cases.filter(({ name }) => name.startsWith(`${category}/`));
    expect(own.length).toBeGreaterThan(20);
    expect((await Promise.all(own.map(differences))).flat()).toEqual([]);
  });

  it('knows every case that it makes an exception for', () => {
    const names = new Set(cases.map(({ name }) => name));
    expect(Object.keys(DIFFERENCES).filter((name) => !names.has(name))).toEqual([]);
  });

  it('names the line that the real tool names', async () => {
    const wrong: string[] = [];
    for (const test of cases) {
      const line = /^\s*ERROR: on Line (\d+) of job\.sub/.exec(test.stderr ?? '')?.[1];
      if (line === undefined) continue;
      const ours = /^on Line (\d+) of job\.sub/.exec((await answer(test)).message)?.[1];
      if (ours !== line) wrong.push(`${test.name}: line ${ours} instead of ${line}`);
    }
    // The real one counts to the end of a statement or a list; ours reports where it starts.
    expect(wrong).toEqual([
      '00basic/line continuation with comment inside: line 3 instead of 4',
      '01queue/in multiline close paren on item line: line 3 instead of 4',
    ]);
  });

  it('draws by chance from what was asked for', async () => {
    const random = await Promise.all(
      cases.filter(isRandom).map(async (test) => ({ name: test.name, ads: (await answer(test)).ads })),
    );
    expect(random.map(({ name }) => name)).toEqual(['02macros/random integer', '02macros/random choice']);
    for (const ad of random[0]?.ads ?? []) expect(ad['Args']).toMatch(/^"([1-9]|10)"$/);
    for (const ad of random[1]?.ads ?? []) expect(ad['Args']).toMatch(/^"[abc]"$/);
  });
});
