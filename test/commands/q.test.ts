import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { condorHabits } from '../../src/commands/argv.ts';
import { parseFormat, autoformat } from '../../src/commands/show/autoformat.ts';
import { jsonAds, longAd, XML_HEAD, XML_TAIL, xmlAd } from '../../src/commands/show/ads.ts';
import { unquote } from '../../src/commands/show/ad.ts';
import { expressions } from '../../src/commands/show/expressions.ts';
import { historyHead, historyLine } from '../../src/commands/show/history.ts';
import { BATCH_ATTRIBUTES, batchesOfClusters, batchesOfJobs, batchLines } from '../../src/commands/show/q-batch.ts';
import { type View, viewAttributes, viewHead, viewRows, VIEWS } from '../../src/commands/show/q-rows.ts';
import { parseFormats, printf } from '../../src/commands/show/printf.ts';
import { countJobs, totalsLines, totalsText } from '../../src/commands/show/totals.ts';
import { columns, cut } from '../../src/commands/show/width.ts';
import { NO_JOBS, sumOf } from '../../src/job/totals.ts';
import type { ClusterView, JobView } from '../../src/index.ts';
import { recorded, recordedJob, view } from './recordings.ts';

const zone = process.env['TZ'];
beforeAll(() => {
  process.env['TZ'] = 'UTC';
});
afterAll(() => {
  if (zone === undefined) delete process.env['TZ'];
  else process.env['TZ'] = zone;
});

const JOBS = [
  recordedJob('q-idle-l.txt', 'condor_q -l 39.0'),
  recordedJob('q-running-l.txt', 'condor_q -l 40.0'),
  recordedJob('q-held-submit-l.txt', 'condor_q -l 41.0'),
  recordedJob('q-held-user-l.txt', 'condor_q -l 42.0'),
];
const SAY = expressions();
const NOW = Date.UTC(2026, 10, 20, 23, 36, 38) / 1000;

/** The lines between the title and the totals. */
function table(command: string, file = 'q-states.txt'): string[] {
  const [, , , ...lines] = recorded(file, command).stdout.split('\n');
  const end = lines.indexOf('');
  return end < 0 ? lines : lines.slice(0, end);
}

/** The jobs as a query for these attributes alone would give them. */
function only(jobs: readonly JobView[], names: readonly string[]): JobView[] {
  return jobs.map((job) => ({
    ...job,
    ad: Object.fromEntries(Object.entries(job.ad).filter(([name]) => names.includes(name))),
  }));
}

/** As `q` prints a view. */
function viewLines(view: View, jobs: readonly JobView[], width?: number): string[] {
  const shown = jobs.filter(({ ad }) => !view.only || view.only(ad));
  return [viewHead(view, width), ...viewRows(view, shown, NOW, width)];
}

describe('q reads like condor_q', () => {
  it('in batches', () => {
    const jobs = only(JOBS, BATCH_ATTRIBUTES);
    expect(batchLines(batchesOfJobs(jobs), undefined)).toEqual(table('condor_q'));
    expect(batchLines(batchesOfJobs(jobs.slice(2)), undefined)).toEqual(table("condor_q -constraint 'JobStatus == 5'"));
    expect(batchLines(batchesOfJobs(jobs.slice(0, 1)), undefined)).toEqual([
      'OWNER   BATCH_NAME    SUBMITTED   DONE   RUN    IDLE  TOTAL JOB_IDS',
      'htcuser ID: 39      11/20 23:36      _      _      1      1 39.0',
    ]);
    expect(batchLines([], undefined)).toEqual(table('condor_q', 'q-empty.txt'));
  });

  it.each([
    ['nobatch', 'condor_q -nobatch'],
    ['hold', 'condor_q -hold'],
    ['run', 'condor_q -run'],
    ['idle', 'condor_q -idle'],
  ] as const)('one job a line: %s', (name, command) => {
    const v: View = VIEWS[name];
    const lines = viewLines(v, only(JOBS, viewAttributes(v)));
    expect(lines).toEqual(table(command).filter((line) => !line.startsWith('---') && line !== ''));
  });

  it.each([
    ['nobatch', 'condor_q -nobatch'],
    ['hold', 'condor_q -hold'],
    ['run', 'condor_q -run'],
  ] as const)('an empty queue: %s', (name, command) => {
    const lines = table(command, 'q-empty.txt').filter((line) => !line.startsWith('---'));
    expect(viewLines(VIEWS[name], [])).toEqual(lines);
  });

  it('with totals', () => {
    const all = countJobs(JOBS);
    const user = { name: 'htcuser@htc.example', totals: all };
    expect(recorded('q-states.txt', 'condor_q').stdout).toContain(totalsLines(all, user, all).join('\n'));
    expect(recorded('q-empty.txt', 'condor_q 99999').stdout).toContain(
      totalsLines(NO_JOBS, undefined, NO_JOBS).join('\n'),
    );
    expect(totalsText(all)).toBe('4 jobs; 0 completed, 0 removed, 1 idle, 1 running, 2 held, 0 suspended');
    expect(countJobs([view({ ClusterId: '1', ProcId: '0', JobStatus: '2', JobUniverse: '7' })])).toEqual(NO_JOBS);
  });

  it('as ClassAds, JSON and XML', () => {
    const idle = JOBS[0] as JobView;
    expect(longAd(idle.ad)).toBe(recorded('q-idle-l.txt', 'condor_q -l 39.0').stdout);
    expect(`[\n${jsonAds(SAY)(idle.ad)}\n]\n`).toBe(recorded('q-idle-json.txt', 'condor_q -json 39.0').stdout);
    expect(XML_HEAD + xmlAd(idle.ad, SAY) + XML_TAIL).toBe(recorded('q-idle-xml.txt', 'condor_q -xml 39.0').stdout);
    const json = jsonAds(SAY, ['ClusterId', 'ProcId', 'JobStatus']);
    expect(`[\n${JOBS.map((job) => json(job.ad)).join('\n,\n')}\n]\n`).toBe(
      recorded('q-states.txt', 'condor_q -json -attributes ClusterId,ProcId,JobStatus').stdout,
    );
  });

  it.each([
    [
      '',
      'condor_q -af ClusterId ProcId JobStatus Owner Cmd Args NoSuch',
      'ClusterId ProcId JobStatus Owner Cmd Args NoSuch',
    ],
    ['jh', 'condor_q -af:jh JobStatus Owner', 'JobStatus Owner'],
    [',', 'condor_q -af:, ClusterId JobStatus', 'ClusterId JobStatus'],
    ['r', 'condor_q -af:r Requirements RequestMemory', 'requirements requestmemory'],
    ['lrng', 'condor_q -af:lrng ClusterId Requirements', 'ClusterId Requirements'],
  ])('as attributes, -af:%s', (letters, command, attributes) => {
    const evaluate = (name: string, ad: JobView['ad']) => unquote(ad[name] ?? '') ?? ad[name] ?? 'undefined';
    const lines = [...autoformat(JOBS, attributes.split(' '), parseFormat(letters), evaluate)];
    expect(`${lines.join('\n')}\n`).toBe(recorded('q-states.txt', command).stdout);
  });

  it('by formats of printf, as condor_q -format', () => {
    const evaluate = (name: string, ad: JobView['ad']) => unquote(ad[name] ?? '') ?? ad[name] ?? 'undefined';
    const say = (...words: string[]) => printf(JOBS[0] as JobView, parseFormats(words), evaluate);
    expect(say('%d.', 'ClusterId', String.raw`%d\n`, 'ProcId')).toBe('39.0\n');
    expect(say('%-8s|', 'Owner', '%8.3s|', 'Owner', '%05d|', 'ClusterId', '%x', 'ClusterId')).toBe(
      'htcuser |     htc|00039|27',
    );
    expect(say('%6.2f%%', 'ClusterId', 'none: %s', 'NoSuch', ' word', 'Owner', '%d', 'Owner')).toBe(' 39.00% word');
    expect(() => parseFormats(['%d'])).toThrow(expect.objectContaining({ code: 'usage' }));
    expect(
      condorHabits(['q', '-format', '%d.', 'ClusterId', '12'], { q: { flags: { format: { type: 'option' } } } }),
    ).toEqual(['q', '--format=%d.', '--format=ClusterId', '12']);
  });

  it('and refuses a letter that it does not know', () => {
    expect(() => parseFormat('jq')).toThrow(expect.objectContaining({ code: 'usage' }));
  });
});

describe('history reads like condor_history', () => {
  const DONE = recordedJob('history-completed.txt', 'condor_history -l 43.0');
  const GONE = recordedJob('history-removed.txt', 'condor_history -l 44.0');

  it('one job a line', () => {
    const lines = recorded('history.txt', 'condor_history -limit 3').stdout.split('\n');
    expect([historyHead(undefined), historyLine(GONE, undefined), historyLine(DONE, undefined)]).toEqual(
      lines.slice(0, 3),
    );
  });

  it('as JSON lines', () => {
    const attributes = ['ClusterId', 'ProcId', 'JobStatus'];
    const json = jsonAds(SAY, attributes, false);
    const text = [GONE, DONE].map((job) => `${json(job.ad)}\n`).join('');
    expect(text).toBe(
      recorded('history.txt', `condor_history -limit 2 -jsonl -attributes ${attributes.join()}`).stdout,
    );
  });
});

describe('batches', () => {
  const job = (cluster: number, proc: number, more: Record<string, string> = {}) =>
    view({ ClusterId: `${cluster}`, ProcId: `${proc}`, Owner: '"me"', JobStatus: '1', QDate: '1795217791', ...more });

  it('count the jobs that have left, and those of one name together', () => {
    const sweep = { JobBatchName: '"a sweep"', TotalSubmitProcs: '10' };
    const lines = batchLines(
      batchesOfJobs([
        job(5, 3, sweep),
        job(5, 9, { ...sweep, JobStatus: '2' }),
        job(6, 0, { ...sweep, JobStatus: '4', QDate: '1795217700' }),
        job(4, 0),
      ]),
      undefined,
    );
    expect(lines).toEqual([
      'OWNER BATCH_NAME    SUBMITTED   DONE   RUN    IDLE  TOTAL JOB_IDS',
      'me    ID: 4       11/20 23:36      _      _      1      1 4.0',
      'me    a sweep     11/20 23:35     18      1      1     20 5.3 ... 6.0',
    ]);
    expect(batchLines(batchesOfJobs([job(5, 3, sweep), job(5, 9, sweep)]), undefined)[1]).toMatch(
      / 8 {6}_ {6}2 {5}10 5\.3-9$/,
    );
  });

  it('are the same from the queue’s counters', () => {
    const named = { JobBatchName: '"a sweep"' };
    const jobs = [
      job(5, 3, { ...named, TotalSubmitProcs: '10' }),
      job(5, 9, { ...named, TotalSubmitProcs: '10', JobStatus: '7' }),
      job(6, 0, { ...named, TotalSubmitProcs: '1', JobStatus: '5', QDate: '1795217700' }),
      job(8, 0, { TotalSubmitProcs: '1', DAGManJobId: '7', JobStatus: '4' }),
    ];
    const cluster = (n: number, more: Partial<ClusterView>): ClusterView => ({
      cluster: n,
      owner: 'me',
      submitted: 1795217791,
      procs: 1,
      manager: false,
      totals: NO_JOBS,
      ...more,
    });
    const one = { first: 0, last: 0 };
    const sweep = { batchName: 'a sweep' };
    const clusters = [
      cluster(5, { ...sweep, procs: 10, first: 3, last: 9, totals: { ...NO_JOBS, jobs: 2, idle: 1, suspended: 1 } }),
      cluster(6, { ...sweep, ...one, submitted: 1795217700, totals: { ...NO_JOBS, jobs: 1, held: 1 } }),
      cluster(8, { ...one, dag: 7, totals: { ...NO_JOBS, jobs: 1, completed: 1 } }),
      cluster(9, { procs: 100, totals: { ...NO_JOBS, unmaterialized: 100 } }),
    ];
    expect(batchLines(batchesOfClusters(clusters), undefined)).toEqual(batchLines(batchesOfJobs(jobs), undefined));
    expect(sumOf(clusters)).toEqual({ ...countJobs(jobs), unmaterialized: 100 });
  });

  it('fit the terminal, whatever a name is made of', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme' }),
        fc.string({ unit: 'grapheme' }),
        fc.integer({ min: 10, max: 200 }),
        (owner, name, width) => {
          const q = (text: string) => `"${text.replaceAll('"', '\\"')}"`;
          const jobs = [job(1, 0, { Owner: q(owner), JobBatchName: q(name), Cmd: q(name), Args: q(owner) })];
          for (const line of [...batchLines(batchesOfJobs(jobs), width), ...viewLines(VIEWS.nobatch, jobs, width)]) {
            expect(columns(line)).toBeLessThanOrEqual(width);
            expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
          }
        },
      ),
    );
    expect(cut('日本語の名前', 5)).toBe('日本');
  });
});
