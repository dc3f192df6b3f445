import { describe, expect, it } from 'vitest';
import { type Flooded, flood } from '../../src/broker/flood.ts';
import type { SiteLoad } from '../../src/broker/load.ts';
import { NOTHING_MEASURED, observe } from '../../src/broker/measures.ts';
import { SampleTaker } from '../../src/broker/samples.ts';
import type { CandidateSite } from '../../src/broker/sites.ts';
import { parseOldAd } from '../../src/classad/api.ts';
import type { CandidateStepped } from '../../src/job/events.ts';

const NOW = 1_800_000_000;
const LOAD: SiteLoad = {
  totalCpus: 8,
  freeCpus: 8,
  here: 0,
  queued: 0,
  running: 0,
  maxJobs: 100,
  meanWait: undefined,
  meanRun: undefined,
  failures: 0,
  probationUntil: undefined,
  outOfUse: false,
};

function site(name: string, load: Partial<SiteLoad> = {}, cost = 0): CandidateSite {
  return { name, cost, load: { ...LOAD, ...load }, ad: parseOldAd(`Name = "${name}"\nRequirements = true`) };
}

const job = (at: string[] = [], refusedBy: string[] = [], text = ''): Flooded<string> => ({
  job: `RequestCpus = 1\nRank = 0.0\nRequirements = true\n${text}`,
  at,
  refusedBy,
});
const flooded = (jobs: readonly Flooded<string>[], sites: readonly CandidateSite[], most = 3) =>
  flood(jobs, (text) => parseOldAd(text), sites, most, NOW);
const sitesOf = (...words: Parameters<typeof flooded>) =>
  flooded(...words).candidates.map((candidate) => candidate.site);

describe('where a flooded job gets candidates', () => {
  const full = { freeCpus: 0, running: 8 };

  it('at the best sites, full ones too, and no more than it may have', () => {
    const sites = [site('dear', {}, 9), site('full', full), site('cheap'), site('fuller', { ...full, queued: 50 })];
    expect(sitesOf([job()], sites)).toEqual(['cheap', 'dear', 'full']);
    expect(sitesOf([job()], sites, 2)).toEqual(['cheap', 'dear']);
    expect(sitesOf([job(['cheap', 'dear'])], sites)).toEqual(['full']);
    expect(sitesOf([job(['cheap', 'dear', 'full'])], sites)).toEqual([]);
    expect(sitesOf([job([], [], 'Requirements = TARGET.Name != "cheap"')], sites, 1)).toEqual(['dear']);
  });

  it('not where the limit of our jobs is reached, by candidates that are opened with it neither', () => {
    const sites = [site('small', { maxJobs: 3, queued: 1 }), site('at its limit', { maxJobs: 4, running: 4 })];
    expect(sitesOf([job(), job(), job()], sites)).toEqual(['small', 'small']);
    expect(
      sitesOf([job()], [site('failing', { probationUntil: 9, queued: 1 }), site('tried', { probationUntil: 9 })]),
    ).toEqual(['tried']);
  });

  it('not where it was refused; what all refuse is hopeless, what none suits is left to others', () => {
    const sites = [site('a'), site('b')];
    expect(sitesOf([job([], ['a'])], sites)).toEqual(['b']);
    expect(flooded([job([], ['a', 'b'])], sites)).toMatchObject({
      candidates: [],
      hopeless: [job().job],
      unsuited: [],
    });
    expect(flooded([job(['b'], ['a'])], sites)).toMatchObject({ candidates: [], hopeless: [], unsuited: [] });
    const choosy = job([], [], 'Requirements = TARGET.Name == "c"');
    expect(flooded([choosy], sites)).toMatchObject({ candidates: [], hopeless: [], unsuited: [choosy.job] });
  });
});

describe('what candidates say of their sites', () => {
  const step = (event: CandidateStepped['event'], to: CandidateStepped['to'], at: number): CandidateStepped => {
    return { v: 1, at: at * 1000, type: 'candidate', job: '1.0', attempt: 2, manager: 'm', site: 's', event, to };
  };

  it('the time from promise to grant is a wait, a refusal is a failure, a withdrawal is nothing', () => {
    const taker = new SampleTaker();
    expect(taker.takeCandidate(step('committed', 'waiting', 100))).toEqual([]);
    expect(taker.takeCandidate(step('granted', 'gone', 160))).toEqual([{ is: 'wait', seconds: 60 }]);
    expect(taker.takeCandidate(step('committed', 'waiting', 200))).toEqual([]);
    expect(taker.takeCandidate(step('withdraw', 'withdrawing', 260))).toEqual([]);
    expect(taker.takeCandidate(step('granted', 'gone', 300))).toEqual([]);
    const [failure] = taker.takeCandidate(step('refused', 'withdrawing', 400));
    expect(failure).toEqual({ is: 'failure', at: 400, message: '' });
    expect(failure && observe(NOTHING_MEASURED, failure).failures).toEqual([400]);
  });
});
