import { LOCAL_SITE } from '../../src/config/sites.ts';
import { describe, expect, it } from 'vitest';
import { errorText } from '../../src/commands/show/error.ts';
import { LogProgress } from '../../src/commands/show/log-progress.ts';
import { batchLines } from '../../src/commands/show/q-batch.ts';
import { dagTable, problemLine } from '../../src/commands/show/dag.ts';
import { credentialStatusText } from '../../src/commands/show/credential-status.ts';
import { pilotLines } from '../../src/commands/show/glideins.ts';
import { backoffRows, settingRows, siteLines, siteNotes, stepText } from '../../src/commands/show/sites.ts';
import { statusLines } from '../../src/commands/show/status.ts';
import { systemdUnit } from '../../src/commands/show/systemd.ts';
import { tableLines } from '../../src/commands/show/table.ts';
import { columns, wrapped } from '../../src/commands/show/width.ts';
import { hasColours } from '../../src/commands/show/colour.ts';
import { whyText } from '../../src/commands/show/why.ts';
import { GryphusError } from '../../src/errors.ts';
import type { DagStatus, CredentialStatus, Pilot, SiteStatus } from '../../src/index.ts';

const site: SiteStatus = {
  name: 'c1',
  url: 'ssh://me@login',
  batch: 'slurm',
  connection: 'up',
  idle: 1,
  queuedThere: 20,
  running: 3,
  unknown: 0,
  sending: 0,
  fetching: 0,
};

describe('problems of a DAG', () => {
  it('have the place that they are at, without a line where they are about a whole file', () => {
    const problem = { file: 'a.dag', line: 2, severity: 'error', message: 'is wrong', remedy: 'Mend it.' };
    expect(problemLine({ ...problem, command: 'JOB' })).toBe('a.dag:2: error: JOB: is wrong\n  → Mend it.');
    expect(problemLine({ ...problem, line: 0 })).toBe('a.dag: error: is wrong\n  → Mend it.');
  });
});

describe('sites', () => {
  it('are a table', () => {
    expect(
      siteLines(
        [site, { ...site, name: 'a-long-name', connection: 'needs-login', message: 'asks for\na code' }],
        undefined,
      ),
    ).toEqual([
      'NAME         BATCH  URL             CONNECTION    HERE   QUEUED   RUNNING   UNKNOWN  NOTE',
      'c1           slurm  ssh://me@login  up               1       20         3         0',
      'a-long-name  slurm  ssh://me@login  needs login      1       20         3         0  asks for a code',
    ]);
  });

  it('are named under q only where jobs wait for one that does not work', () => {
    expect(siteNotes([site, { ...site, connection: 'unused' }])).toEqual([]);
    expect(siteNotes([{ ...site, connection: 'down', idle: 0, queuedThere: 0, running: 0 }])).toEqual([]);
    expect(siteNotes([{ ...site, connection: 'needs-login', message: 'the connection was lost' }])).toEqual([
      '-- Site c1 needs login: the connection was lost; 24 jobs wait for it.',
      '   → gryphus site login c1',
      '',
    ]);
  });

  it('are tested step by step', () => {
    expect(stepText({ step: 'host key', ok: true, message: 'known', remedy: 'nothing' })).toBe('✓ host key: known\n');
    expect(stepText({ step: 'log-in', ok: false, message: 'refused\x1b[2J', remedy: 'ssh-copy-id login' })).toBe(
      '✗ log-in: refused?[2J\n  → ssh-copy-id login\n',
    );
  });
});

it('a table keeps to the terminal and to its columns, also with wide letters', () => {
  expect(
    tableLines(
      ['A', ' N'],
      [
        ['日本', '1'],
        ['x', '22'],
      ],
      undefined,
    ),
  ).toEqual(['A      N', '日本   1', 'x     22']);
  expect(tableLines(['A', 'B'], [['12345', '12345']], 8)).toEqual(['A     B', '12345 12']);
});

it('status says what runs', () => {
  const status = {
    running: true,
    pid: 7,
    home: '/h',
    redis: 'up',
    managers: [{ identity: 'me', pid: 8, since: 0 }],
  } as const;
  expect(statusLines(status, [], undefined).slice(0, 2)).toEqual([
    'Scheduler:   running (process 7)',
    'Redis:       up',
  ]);
  expect(statusLines(status, [], undefined)[2]).toMatch(/^GridManager: me \(process 8\) since /);
});

it('status says which build runs, and of which age another than the command is', () => {
  const build = { version: '1.2.0', path: '/opt/gryphus', built: '2026-11-23T01:00:00.000Z' };
  const status = { running: true, home: '/h', redis: 'up', managers: [] } as const;
  const lines = (more: object) => statusLines({ ...status, ...more }, [], undefined).slice(1, -2);
  expect(lines({ build })).toEqual(['Gryphus:     1.2.0 of /opt/gryphus']);
  const newer = { ...build, version: '1.3.0', built: '2026-11-23T02:00:00.000Z' };
  const remedy = '             `gryphus down && gryphus up` switches to it; jobs keep running';
  expect(lines({ build, ownBuild: newer })).toEqual([
    "Gryphus:     1.2.0 of /opt/gryphus, an older build than this command's",
    remedy,
  ]);
  expect(lines({ build: newer, ownBuild: { ...build, path: '/home/me/g' } })).toEqual([
    "Gryphus:     1.3.0 of /opt/gryphus, a newer build than this command's",
    '             (1.2.0 of /home/me/g)',
    remedy,
  ]);
  expect(lines({ ownBuild: build })[0]).toBe("Gryphus:     an older build than this command's");
});

it('why has one answer, its evidence, and what to type', () => {
  const why = {
    id: { cluster: 1, proc: 2 },
    state: 'held',
    summary: 'It is held.',
    details: ['since noon'],
    suggestions: ['gryphus release 1.2'],
  } as const;
  expect(whyText(why)).toBe('1.2 (held): It is held.\n    since noon\n  → gryphus release 1.2\n');
});

it('errors are coloured at terminals that have colours', () => {
  const error = new GryphusError('usage', 'It is wrong.');
  expect(errorText(error, false, true)).toBe('\u001b[31mgryphus:\u001b[0m It is wrong.\n');
  const stream = { isTTY: true };
  expect(hasColours(stream, { TERM: 'xterm' })).toBe(true);
  expect(hasColours(stream, { TERM: 'xterm', NO_COLOR: '' })).toBe(true);
  expect(hasColours(stream, { TERM: 'xterm', NO_COLOR: '1' })).toBe(false);
  expect(hasColours(stream, {})).toBe(false);
  expect(hasColours({}, { TERM: 'xterm' })).toBe(false);
});

describe('errors', () => {
  it('are one line and what to do', () => {
    const error = new GryphusError('not-found', 'There is no job 7.', { suggestions: ['Look again.', 'Ask.'] });
    expect(errorText(error, false)).toBe('gryphus: There is no job 7.\n  → Look again.\n  → Ask.\n');
  });
  it('of our own making say so, with the place on request', () => {
    expect(errorText(new TypeError('x is not a function'), false)).toMatch(
      /^gryphus: internal error: x is not a function\n/,
    );
    expect(errorText(new TypeError('x'), true)).toContain('show.test.ts');
    expect(errorText('thrown text', false)).toContain('thrown text');
  });
});

it('a unit of systemd has its words quoted', () => {
  const unit = systemdUnit('/opt/no de/bin/node', '/a$b/%/gryphus.js', { GRYPHUS_HOME: '/home/"me"/$x', SECRET: 'no' });
  expect(unit).toContain('ExecStart="/opt/no de/bin/node" "/a$$b/%%/gryphus.js" up\n');
  expect(unit).toMatch(/^ExecStop=\/bin\/sh -c ".*" sh "\/opt\/no de\/bin\/node" "\/a\$\$b\/%%\/gryphus\.js" down$/m);
  expect(unit).toContain('Environment="GRYPHUS_HOME=/home/\\"me\\"/$x"\n');
  expect(unit).not.toContain('SECRET');
  expect(systemdUnit('n', 'p', { GRYPHUS_HOME: undefined })).not.toContain('Environment');
});

it('a log is done when every job that it speaks of has ended, and a job may begin again', () => {
  const job = { cluster: 1, proc: 0, at: 0 };
  const progress = new LogProgress({ cluster: 1 });
  expect(progress.allDone).toBe(false);
  progress.take({ ...job, type: 'submit', host: 'h' });
  progress.take({ ...job, cluster: 2, type: 'submit', host: 'h' });
  progress.take({ ...job, type: 'aborted' });
  expect([progress.allDone, progress.ended]).toEqual([true, 1]);
  progress.take({ ...job, type: 'submit', host: 'h' });
  expect([progress.allDone, progress.ended]).toEqual([false, 0]);
});

describe('narrow terminals', () => {
  const fits = (lines: readonly string[], width: number) =>
    expect(lines.filter((line) => columns(line) > width)).toEqual([]);
  const message = 'asks for a code, which nobody is there to give; it will be asked again';
  const sites = [site, { ...site, name: 'a-long-name', connection: 'needs-login' as const, message }];
  const credentialStatus: CredentialStatus = {
    name: '/home/jane/.globus/a-very-long-name.pem',
    what: 'X.509 proxy',
    state: 'ended',
    left: 0,
    end: 0,
    level: 0,
    renews: false,
    waiting: 12,
    there: 3,
    held: 4,
    sites: ['alpha', 'beta', 'gamma'],
    type: ['type this'],
    problem: `The X.509 proxy ended at 1970-01-12 13:46 UTC. ${message}`,
  };
  const pilot = { job: '12.0', site: 'cluster1', is: 'home', cores: 8, busy: 3, age: 4000, left: 7200, by: 'factory' };
  const dag: DagStatus = {
    cluster: 123,
    files: ['x.dag'],
    directory: '/d',
    batchName: 'n'.repeat(40),
    manager: 'running',
    submitted: 0,
  };

  it.each([60, 80, 200])('%d columns are enough for the state of things', (width) => {
    fits(siteLines(sites, width), width);
    fits(credentialStatusText([credentialStatus], width).split('\n'), width);
    fits(pilotLines([{ ...pilot, host: 'node17.cluster.example.org' } as Pilot], width), width);
    fits(dagTable([dag], width), width);
    // Nothing important is lost.
    expect(siteLines(sites, width).join(' ').replaceAll(/\s+/g, ' ')).toContain(message);
    for (const head of ['CONNECTION', 'HERE', 'QUEUED', 'RUNNING', 'UNKNOWN'])
      expect(siteLines(sites, width)[0]).toContain(head);
    for (const head of ['NAME', 'FUEL', 'LEFT', 'JOBS'])
      expect(credentialStatusText([credentialStatus], width)).toContain(head);
    for (const head of ['DONE', 'RUN', 'FAIL', 'TOTAL', 'STATE']) expect(dagTable([dag], width)[0]).toContain(head);
    expect(dagTable([dag], width)[1]).toMatch(/running$/);
  });

  it('a pipe has it all', () => {
    expect(siteLines(sites, undefined)[2]).toMatch(/ ssh:\/\/me@login .* it will be asked again$/);
    expect(credentialStatusText([credentialStatus], undefined)).toContain('alpha beta gamma');
  });

  it('is printed over several lines, none of which is lost', () => {
    expect(wrapped('  ! one two three', 10)).toEqual(['  ! one', '    two', '    three']);
    expect(wrapped('  ! one two three', undefined)).toEqual(['  ! one two three']);
    expect(wrapped('averylongword', 5)).toEqual(['averylongword']);
  });
});

describe('a table in 80 columns', () => {
  const heads = ['ID', 'NAME', ' DONE', ' TOTAL', 'STATE'];
  const rows = [
    ['1', 'x'.repeat(90), '1', '2', 'running'],
    ['12', 'short', '10', '20', 'held'],
  ];

  it('keeps its numbers, and cuts the name', () => {
    const lines = tableLines(heads, rows, 40, { gives: ['NAME'] });
    expect(lines.map((line) => line.length <= 40)).toEqual([true, true, true]);
    expect(lines[0]).toMatch(/^ID NAME +DONE +TOTAL STATE$/);
    expect(lines[1]).toMatch(/^1 {2}x+… +1 +2 running$/);
    expect(tableLines(heads, rows.slice(1), 40, { gives: ['NAME'] })[1]).toBe('12  short     10      20  held');
  });

  it('cuts nothing where there is no terminal', () => {
    expect(tableLines(heads, rows, undefined, { gives: ['NAME'] })[1]).toContain('x'.repeat(90));
  });

  it('is what q shows of a batch with a long name', () => {
    const id = { cluster: 14, proc: 0 };
    const counts = { done: 0, total: 3, running: 1, idle: 1, held: 1, bare: false, counted: new Set([14]) };
    const batch = { owner: 'me', name: 'ü'.repeat(100), submitted: 0, ...counts };
    const lines = batchLines([{ ...batch, first: id, last: { cluster: 15, proc: 2 } }], 80);
    expect(lines.every((line) => line.length <= 80)).toBe(true);
    expect(lines[0]).toMatch(/TOTAL JOB_IDS$/);
    expect(lines[1]).toMatch(/ü… {2}\S+ \S+ +_ +1 +1 +1 +3 14\.0 \.\.\. 15\.2$/);
    expect(batchLines([{ ...batch, first: id, last: id }], undefined)[1]).toContain('ü'.repeat(100));
  });
});

describe('what is set for a site', () => {
  it('has the names of its file, and units', () => {
    const site = { ...LOCAL_SITE, extraArgs: ['-l', 'feature=a b'], walltime: 5400, allocationEnd: 1_798_675_200 };
    const rows = Object.fromEntries(settingRows(site));
    expect(rows).toMatchObject({
      extra_args: '-l "feature=a b"',
      walltime: '1 h 30 min',
      allocation_end: '2026-12-31 00:00 UTC',
      'limits.running': '-',
      'limits.poll_min': '1 s between polls of its queue, at least',
    });
    expect(Object.keys(rows).filter((name) => /[A-Z]/.test(name))).toEqual([]);
  });

  it('is followed by what was learned', () => {
    const status = {
      name: 'a',
      url: 'local',
      batch: 'slurm',
      connection: 'up' as const,
      idle: 1,
      queuedThere: 2,
      running: 3,
      unknown: 0,
      sending: 0,
      fetching: 0,
    };
    const more = {
      learned: { jobs: 10, message: 'MaxSubmit', at: 1_798_675_200_000 },
      outOfUse: 'its nodes fail',
      nextTry: 1_798_675_260_000,
    };
    expect(backoffRows({ ...status, ...more })).toEqual([
      ['connection', 'up'],
      ['jobs', '1 here, 2 queued, 3 running, 0 unknown'],
      ['learned limit', '10 jobs, since 2026-12-31 00:00 UTC; it refused more: MaxSubmit'],
      ['out of use', 'its nodes fail; the next trial job goes there not before 2026-12-31 00:01 UTC'],
    ]);
  });
});
