import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { condorHabits } from '../../src/commands/argv.ts';
import { parseFormat, autoformat } from '../../src/commands/show/autoformat.ts';
import { longAd, XML_HEAD, XML_TAIL, xmlAd } from '../../src/commands/show/ads.ts';
import { jsonAds, unquote } from '../../src/job/json-ads.ts';
import { expressions } from '../../src/job/expressions.ts';
import { historyHead, historyLine } from '../../src/commands/show/history.ts';
import { BATCH_ATTRIBUTES, batchesOfClusters, batchesOfJobs } from '../../src/client/batches.ts';
import { batchLines } from '../../src/commands/show/q-batch.ts';
import { DAG_HEAD, dagLines } from '../../src/commands/show/q-dag.ts';
import { command, type View, viewAttributes, viewHead, viewRows, VIEWS } from '../../src/commands/show/q-rows.ts';
import { parseFormats, printf } from '../../src/commands/show/printf.ts';
import { countJobs, totalsLines, totalsText } from '../../src/commands/show/totals.ts';
import { columns, cut } from '../../src/commands/show/width.ts';
import { NO_JOBS, sumOf } from '../../src/job/totals.ts';
import type { ClusterView, JobView } from '../../src/index.ts';
import { recorded, recordedJob, recordings, view } from './recordings.ts';

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

/** The lines between the header and the totals. */
function table(command: string, file = 'q-states.txt'): string[] {
  const [, , , ...lines] = recorded(file, command).stdout.split('\n');
  const end = lines.indexOf('');
  return end < 0 ? lines : lines.slice(0, end);
}

/** The jobs as returned by a query for only these attributes. */
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
    // With a separate column for the exit status.
    const [head = '', gone = '', done = ''] = recorded('history.txt', 'condor_history -limit 3').stdout.split('\n');
    const at = head.indexOf('CMD');
    const said = (line: string, exit: string) => `${line.slice(0, at)}${exit.padEnd(5)}${line.slice(at)}`;
    expect(historyHead(undefined)).toBe(said(head, 'EXIT'));
    expect(historyLine({ ...GONE, state: 'removed' }, undefined)).toBe(said(gone, '-'));
    expect(historyLine({ ...DONE, state: 'completed' }, undefined)).toBe(said(done, '3'));
    const killed = { ...DONE.ad, ExitBySignal: 'true', ExitSignal: '9' };
    expect(historyLine({ ...DONE, state: 'completed', ad: killed }, undefined)).toBe(said(done, 'S9'));
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

  const cluster = (n: number, more: Partial<ClusterView>): ClusterView => ({
    cluster: n,
    owner: 'me',
    submitted: 1795217791,
    procs: 1,
    first: 0,
    last: 0,
    manager: false,
    totals: NO_JOBS,
    ...more,
  });
  const HEAD = 'OWNER BATCH_NAME    SUBMITTED   DONE   RUN    IDLE  TOTAL JOB_IDS';

  it('count the jobs that have left, and those of one name together', () => {
    const sweep = { JobBatchName: '"a sweep"' };
    const jobs = [
      job(5, 3, sweep),
      job(5, 9, { ...sweep, JobStatus: '2' }),
      job(6, 0, { ...sweep, JobStatus: '4', QDate: '1795217700' }),
      job(4, 0),
    ];
    const clusters = [
      cluster(5, { procs: 10, totals: { ...NO_JOBS, jobs: 2 } }),
      cluster(6, { procs: 10, totals: { ...NO_JOBS, jobs: 1, completed: 1 } }),
    ];
    expect(batchLines(batchesOfJobs(jobs, clusters), undefined)).toEqual([
      HEAD,
      'me    ID: 4       11/20 23:36      _      _      1      1 4.0',
      'me    a sweep     11/20 23:35     18      1      1     20 5.3 ... 6.0',
    ]);
    // Ads that a constraint rejects are not processed.
    expect(batchLines(batchesOfJobs(jobs.slice(0, 1), clusters), undefined)[1]).toMatch(/ 8 {6}_ {6}1 {5}10 5\.3$/);
  });

  it('do not call done what is not made yet, and keep columns apart', () => {
    const totals = { ...NO_JOBS, jobs: 91, idle: 82, running: 9, unmaterialized: 999_900 };
    const million = cluster(7, { procs: 1_000_000, first: 9, last: 99, totals });
    expect(batchLines(batchesOfClusters([million]), undefined)).toEqual([
      'OWNER BATCH_NAME    SUBMITTED   DONE   RUN    IDLE   TOTAL JOB_IDS',
      'me    ID: 7       11/20 23:36      9      9     82 1000000 7.9-99',
    ]);
    const many = fc.record({ done: fc.nat(1e9), running: fc.nat(1e9), idle: fc.nat(1e9), held: fc.nat(1e9) });
    fc.assert(
      fc.property(many, ({ done, running, idle, held }) => {
        const jobs = running + idle + held;
        const view = cluster(1, { procs: done + jobs, totals: { ...NO_JOBS, jobs, running, idle, held } });
        const [head = '', row = ''] = batchLines(batchesOfClusters([view]), undefined);
        const shown = [done, running, idle, ...(held > 0 ? [held] : []), done + jobs].map((n) =>
          n > 0 ? `${n}` : '_',
        );
        expect(row.split(/ +/).slice(5, -1)).toEqual(shown);
        expect(head.trim().split(/ +/).slice(3, -1)).toHaveLength(shown.length);
      }),
    );
  });

  it('of a DAG are its nodes, not its manager, as condor_q has them', () => {
    const during = recordings('dag-q.txt');
    const [q = '', bare = '', rich = ''] = during.map(({ stdout }) => stdout);
    const rows = (text: string) => text.split('\n').filter((line) => /^(OWNER|htcuser)/.test(line));
    const dag = (n: number, name: string, total: number, done: number, more: Partial<ClusterView> = {}) =>
      cluster(n, {
        owner: 'htcuser',
        batchName: name,
        manager: true,
        nodes: { total, done },
        totals: { ...NO_JOBS, jobs: 1, running: 1 },
        ...more,
      });
    const node = (n: number, of: number, name: string, more: Partial<ClusterView>) =>
      cluster(n, { owner: 'htcuser', batchName: name, dag: of, ...more });
    const diamond = [
      dag(108, 'diamond.dag+108', 4, 0, { submitted: 1795218362 }),
      node(109, 108, 'diamond.dag+108', { submitted: 1795218362, totals: { ...NO_JOBS, jobs: 1, running: 1 } }),
    ];
    expect(batchLines(batchesOfClusters(diamond), undefined)).toEqual(rows(q));
    // HTCondor has 0.0 there: no job of it is in the queue.
    const alone = [dag(110, 'richbatch', 1, 0, { submitted: 1795218362 })];
    expect(batchLines(batchesOfClusters(alone), undefined)).toEqual(
      rows(bare).map((row) => row.replace(/0\.0$/, '110.0')),
    );
    const later = [
      dag(823, 'richbatch', 5, 1, { submitted: 1795221645 }),
      node(824, 823, 'richbatch', { submitted: 1795221646, totals: { ...NO_JOBS, jobs: 1, idle: 1 } }),
    ];
    expect(batchLines(batchesOfClusters(later), undefined)).toEqual(rows(rich));
    // The same by its jobs; a sub-DAG counts as one node; held nodes are shown.
    const idle = { ...NO_JOBS, jobs: 3, idle: 3 };
    const deep = [
      dag(1, 'outer', 9, 2),
      dag(2, 'outer', 50, 7, { dag: 1 }),
      node(3, 2, 'outer', { procs: 3, last: 2, totals: idle }),
    ];
    const [, row = ''] = batchLines(batchesOfClusters(deep), undefined);
    expect(row).toMatch(/ 2 {6}_ {6}3 {6}9 3\.0-2$/);
    const jobs = [0, 1, 2].map((proc) =>
      job(3, proc, { Owner: '"htcuser"', JobBatchName: '"outer"', DAGManJobId: '2' }),
    );
    expect(batchLines(batchesOfJobs(jobs, deep), undefined)[1]).toBe(row);
    const held = [dag(1, 'x', 9, 2, { totals: { ...NO_JOBS, jobs: 1, held: 1 } })];
    expect(batchLines(batchesOfClusters(held), undefined)[1]).toMatch(/ 2 {6}_ {6}_ {6}1 {6}9 1\.0$/);
  });

  it('of DAGs, one job a line, have nodes below their manager, as condor_q -dag -nobatch', () => {
    const { stdout } = recorded('dag-q.txt', 'condor_q -dag -nobatch');
    const [head = '', manager = '', node = ''] = stdout.split('\n').filter((line) => /^ (ID|10[89])/.test(line));
    const args = manager.slice(manager.indexOf('condor_dagman ') + 'condor_dagman '.length);
    const ad = (more: Record<string, string>) => ({ Owner: '"htcuser"', JobStatus: '2', ...more });
    const jobs = [
      job(109, 0, {
        ...ad({ QDate: '1795218364', DAGManJobId: '108', DAGNodeName: '"A"', JobCurrentStartDate: '1795218364' }),
        ImageSize: '8192',
        Cmd: '"/bin/sh"',
        Arguments: `"-c sleep' '1;' 'echo' 'node' 'A;' 'exit' '0"`,
      }),
      job(108, 0, {
        ...ad({ QDate: '1795218362', JobCurrentStartDate: '1795218362' }),
        ImageSize: '1250',
        Cmd: '"/usr/bin/condor_dagman"',
        Arguments: `"${args}"`,
      }),
    ];
    const now = 1795218365;
    expect([DAG_HEAD, ...dagLines(jobs, now, undefined)]).toEqual([head, manager, node]);
    // Nodes of a sub-DAG are one level deeper; if the manager is not shown, they stand alone.
    const deep = [
      job(3, 0, { DAGManJobId: '2', DAGNodeName: '"x"' }),
      job(2, 0, { DAGManJobId: '1', DAGNodeName: '"sub"' }),
    ];
    const names = (all: readonly JobView[]) => dagLines(all, now, undefined).map((line) => line.slice(9, 26).trimEnd());
    expect(names([...deep, job(1, 0)])).toEqual(['me', ' |-sub', '  |-x']);
    expect(names(deep)).toEqual(['me', ' |-x']);
  });

  it('name a DAG by its file, not by how our program is called', () => {
    const args = '--max-semi-space-size=64 /opt/gryphus/dist/dag/dag-manager.js -Dag d.dag -MaxIdle 5';
    expect(command(view({ Cmd: '"/usr/bin/node"', Arguments: `"${args}"` }).ad)).toBe('dagman -Dag d.dag -MaxIdle 5');
    expect(command(view({ Cmd: '"/usr/bin/node"', Arguments: '"dag-manager.js x"' }).ad)).toBe('node dag-manager.js x');
  });

  it('are the same from the queue’s counters', () => {
    const named = { JobBatchName: '"a sweep"' };
    const jobs = [
      job(5, 3, named),
      job(5, 9, { ...named, JobStatus: '7' }),
      job(6, 0, { ...named, JobStatus: '5', QDate: '1795217700' }),
      job(8, 0, { DAGManJobId: '7', JobStatus: '4' }),
    ];
    const sweep = { batchName: 'a sweep' };
    const clusters = [
      cluster(5, { ...sweep, procs: 10, first: 3, last: 9, totals: { ...NO_JOBS, jobs: 2, idle: 1, suspended: 1 } }),
      cluster(6, { ...sweep, submitted: 1795217700, totals: { ...NO_JOBS, jobs: 1, held: 1 } }),
      cluster(8, { dag: 7, totals: { ...NO_JOBS, jobs: 1, completed: 1 } }),
    ];
    const { first: _first, last: _last, ...unmade } = cluster(9, { procs: 100 });
    const all = [...clusters, { ...unmade, totals: { ...NO_JOBS, unmaterialized: 100 } }];
    expect(batchLines(batchesOfClusters(all), undefined)).toEqual(batchLines(batchesOfJobs(jobs, all), undefined));
    expect(sumOf(all)).toEqual({ ...countJobs(jobs), unmaterialized: 100 });
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
