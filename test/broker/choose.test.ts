import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { choose } from '../../src/broker/choose.ts';
import { explainChoice } from '../../src/broker/explain.ts';
import { expectedWait, type SiteLoad, capacityFor } from '../../src/broker/load.ts';
import { NOTHING_MEASURED, observe, recentFailures } from '../../src/broker/measures.ts';
import { candidateOf, isInUse, siteAd } from '../../src/broker/site-ad.ts';
import type { CandidateSite, KnownSite } from '../../src/broker/sites.ts';
import { takeBack } from '../../src/broker/take-back.ts';
import { ClassAd, parseOldAd } from '../../src/classad/api.ts';
import { LOCAL_SITE } from '../../src/config/sites.ts';

const NOW = 1_800_000_000;

function known(
  name: string,
  more: Partial<KnownSite> & { cost?: number; cpus?: number; free?: number } = {},
): KnownSite {
  const { cost = 0, cpus = 8, free = cpus, ...parts } = more;
  return {
    record: { ...LOCAL_SITE, name, cost },
    capacityPoll: {
      at: NOW * 1000,
      validUntil: (NOW + 180) * 1000,
      running: 0,
      host: name,
      os: 'Linux 6.1',
      arch: 'x86_64',
      freeDiskKb: undefined,
      batchVersion: undefined,
      cpus,
      freeCpus: free,
    },
    connection: { connection: 'up', message: '' },
    jobs: { here: 0, queued: 0, running: 0 },
    backoff: {},
    measures: NOTHING_MEASURED,
    ...parts,
  };
}

const candidate = (...words: Parameters<typeof known>) => candidateOf(known(...words), NOW);

function job(text = ''): ClassAd {
  return parseOldAd(`RequestCpus = 1\nRank = 0.0\nRequirements = true\n${text}`);
}

const chosen = (ad: ClassAd, sites: readonly CandidateSite[]) =>
  choose([ad], (one) => one, sites, NOW).choices[0]?.site;

describe("a site's ad", () => {
  it('says what it is in HTCondor words, and leaves out what is not known', () => {
    const ad = siteAd(known('a b"c', { cost: 2.5 }), NOW);
    expect(ad).toMatchObject({ Name: '"a b\\"c"', Arch: '"X86_64"', OpSys: '"LINUX"', TotalCpus: '8', Cost: '2.5000' });
    const bare = siteAd(known('x', { capacityPoll: undefined, connection: undefined }), NOW);
    expect(bare).toMatchObject({ Connection: '"unused"' });
    expect(Object.keys(bare)).not.toContain('TotalCpus');
  });

  it.each([
    ['is not valid any more', { capacityPoll: { ...must(known('x').capacityPoll), validUntil: (NOW - 1) * 1000 } }],
    ['was never heard of', { capacityPoll: undefined }],
    ['wants a log-in', { connection: { connection: 'needs-login', message: 'Who are you?' } as const }],
    ['has too few cores', { cpus: 1 }],
  ])('of a site that %s matches no job', (_why, more) => {
    expect(chosen(job('RequestCpus = 2'), [candidate('x', more)])).toBeUndefined();
  });
});

describe('the choice', () => {
  const [cheap, dear] = [candidate('cheap', { cost: 1 }), candidate('dear', { cost: 9 })];

  it("is the job's by Rank, else the soonest, else the cheapest", () => {
    expect(chosen(job(), [dear, cheap])).toBe('cheap');
    expect(chosen(job('Rank = TARGET.Cost'), [cheap, dear])).toBe('dear');
    expect(chosen(job(), [candidate('full', { cpus: 8, free: 0 }), dear])).toBe('dear');
    expect(chosen(job('Requirements = TARGET.Name == "dear"'), [cheap, dear])).toBe('dear');
  });

  it('avoids a site that it was taken back from, where there is another', () => {
    expect(chosen(job('GryphusTakenBackFrom = "cheap"'), [cheap, dear])).toBe('dear');
    expect(chosen(job('GryphusTakenBackFrom = "cheap"'), [cheap])).toBe('cheap');
  });

  it('evaluates alike jobs once', () => {
    let asked = 0;
    const counting = new Proxy(cheap.ad, {
      get(ad, name) {
        if (name === 'find') return (key: string) => ((asked += key === 'requirements' ? 1 : 0), ad.find(key));
        const value: unknown = Reflect.get(ad, name, ad);
        return typeof value === 'function' ? value.bind(ad) : value;
      },
    });
    const site = { ...cheap, ad: counting };
    const cost = (jobs: number) => {
      asked = 0;
      choose(
        Array.from({ length: jobs }, (_, i) => i),
        () => job(),
        [site],
        NOW,
      );
      return asked;
    };
    const few = cost(2);
    expect(few).toBeGreaterThan(0);
    expect(cost(2000)).toBe(few);
  });

  it('gives no site more than it has capacity for, and every job at most one', () => {
    const load = fc.record({
      cpus: fc.integer({ min: 1, max: 64 }),
      free: fc.nat(64),
      running: fc.nat(20),
      queued: fc.nat(20),
    });
    fc.assert(
      fc.property(fc.array(load, { minLength: 1, maxLength: 5 }), fc.nat(300), (loads, jobs) => {
        const sites = loads.map(({ cpus, free, running, queued }, i) =>
          candidate(`s${i}`, { cpus, free: Math.min(cpus, free), jobs: { here: 0, queued, running } }),
        );
        const { choices, staying } = choose(
          Array.from({ length: jobs }, (_, i) => i),
          () => job(),
          sites,
          NOW,
        );
        expect(new Set(choices.map((one) => one.job)).size).toBe(choices.length);
        expect(choices.length + staying.reduce((sum, one) => sum + one.jobs, 0)).toBe(jobs);
        for (const { name, load } of sites)
          expect(choices.filter((one) => one.site === name).length).toBeLessThanOrEqual(capacityFor(load, 1));
      }),
    );
  });
});

describe('expected waits and capacity', () => {
  const idle: SiteLoad = {
    totalCpus: 8,
    freeCpus: 8,
    here: 0,
    queued: 0,
    running: 0,
    maxJobs: 1000,
    meanWait: undefined,
    meanRun: undefined,
    failures: 0,
    probationUntil: undefined,
    outOfUse: false,
  };

  it('a core that is free means no wait; each job before us means one', () => {
    expect(expectedWait(idle, 8)).toBe(0);
    const full = { ...idle, freeCpus: 0, running: 4, meanRun: 100 };
    expect(expectedWait(full, 1)).toBe(25);
    expect(expectedWait({ ...full, queued: 4 }, 1)).toBe(125);
    expect(expectedWait({ ...full, meanWait: 4000 }, 1)).toBe(4000);
  });

  it('a site gets what it can start, and work for a minute', () => {
    expect(capacityFor(idle, 1)).toBe(10);
    expect(capacityFor({ ...idle, meanRun: 1 }, 1)).toBe(8 + 480);
    expect(capacityFor({ ...idle, meanRun: 1, maxJobs: 20, running: 5 }, 1)).toBe(15);
    expect(capacityFor({ ...idle, queued: 10 }, 1)).toBe(0);
  });

  it('one that failed three times within the hour is tried with one job', () => {
    const measures = [60, 50, 40].reduce(
      (all, ago) => observe(all, { is: 'failure', at: NOW - ago }),
      NOTHING_MEASURED,
    );
    expect(recentFailures(measures, NOW)).toBe(3);
    expect(recentFailures(measures, NOW + 3600)).toBe(0);
    expect(capacityFor({ ...idle, failures: 3, probationUntil: 9 }, 1)).toBe(1);
    expect(capacityFor({ ...idle, failures: 3, probationUntil: 9, running: 1 }, 1)).toBe(0);
  });

  it('says so, and until when', () => {
    const measures = [3000, 2000, 1000, 10].reduce(
      (all, ago) => observe(all, { is: 'failure', at: NOW - ago }),
      NOTHING_MEASURED,
    );
    const bad = candidate('bad', { measures, jobs: { here: 1, queued: 0, running: 0 } });
    const { summary, details } = explainChoice(job(), [bad], NOW);
    expect(summary).toContain('can take more: bad');
    // Two failures remain when the one from 2,000 s ago is an hour old.
    const until = new Date((NOW + 1600) * 1000).toTimeString().slice(0, 5);
    expect(details).toEqual([
      `Site bad is on probation until ${until}: it failed 4 jobs within the last hour, and gets one job at a time.`,
    ]);
    expect(explainChoice(job(), [candidate('good')], NOW).details).toEqual([]);
  });

  it('has a site that is out of use for one job, when its time has come', () => {
    expect(capacityFor({ ...idle, outOfUse: true }, 1)).toBe(1);
    expect(capacityFor({ ...idle, outOfUse: true, queued: 1 }, 1)).toBe(0);
    const site = (probing: boolean) => ({ backoff: { outOfUse: { message: 'x', probeAt: NOW * 1000, probing } } });
    expect(isInUse({ backoff: {} }, NOW)).toBe(true);
    expect(isInUse(site(false), NOW - 1)).toBe(false);
    expect(isInUse(site(false), NOW)).toBe(true);
    expect(isInUse(site(true), NOW + 60)).toBe(false);
  });
});

describe('taking back', () => {
  const [slow, other] = [candidate('slow', { free: 0 }), candidate('other')];
  const waiting = { job: 1, ad: job(), site: 'slow', waited: 700, patience: 600, abandoned: false };

  it('is for jobs out of patience, to a site with free capacity that they have not tried', () => {
    expect(takeBack([waiting], [slow, other], NOW)).toEqual([{ job: 1, from: ['slow'] }]);
    expect(takeBack([{ ...waiting, waited: 599 }], [slow, other], NOW)).toEqual([]);
    expect(takeBack([{ ...waiting, waited: 1, abandoned: true }], [slow, other], NOW)).toHaveLength(1);
    expect(takeBack([waiting], [slow], NOW)).toEqual([]);
    expect(takeBack([{ ...waiting, ad: job('GryphusTakenBackFrom = "other"') }], [slow, other], NOW)).toEqual([]);
    expect(takeBack([{ ...waiting, ad: job('Requirements = TARGET.Name == "slow"') }], [slow, other], NOW)).toEqual([]);
  });

  it('takes no more than the other site has capacity for', () => {
    const many = Array.from({ length: 100 }, (_, i) => ({ ...waiting, job: i }));
    expect(takeBack(many, [slow, other], NOW)).toHaveLength(capacityFor(other.load, 1));
  });
});

describe('why', () => {
  it('names the clause, and the sites', () => {
    const ad = job('Requirements = TARGET.TotalCpus >= 64 && TARGET.Arch == "X86_64"');
    const { summary, details } = explainChoice(ad, [candidate('a'), candidate('b')], NOW);
    expect(summary).toBe('None of 2 sites would run it.');
    expect(details.join('\n')).toContain('TARGET.TotalCpus >= 64\n');
    expect(details.at(-1)).toBe("Rejected by the job's Requirements: a, b.");
    const away = candidate('a', { connection: { connection: 'down', message: '' } });
    expect(explainChoice(job(), [away], NOW).details.at(-1)).toBe('Reject the job: a.');
  });

  it('says what a job waits for that suits', () => {
    const full = candidate('full', { free: 0, jobs: { here: 0, queued: 5, running: 8 } });
    expect(explainChoice(job(), [full], NOW).summary).toContain('until a suitable site can take more: full');
  });
});

function must<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('not there');
  return value;
}
