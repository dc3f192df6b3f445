import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { awkPrograms } from './awk-programs.ts';
import { fixture, shellHalf } from './recorded.ts';

const SRC = join(import.meta.dirname, '../../src');
const SCRIPTS = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.sh'));

/** The ones installed on this machine; Debian's own is mawk, and sites have the others. */
const AWKS = ['mawk', 'gawk --posix', 'gawk', 'original-awk', 'busybox awk']
  .map((message) => message.split(' '))
  .filter(([command = '', ...args]) => spawnSync(command, [...args, 'BEGIN { exit }']).status === 0);
const SHELLS = [['dash'], ['bash', '--posix'], ['bash'], ['busybox', 'sh'], ['mksh']].filter(
  ([command = '', ...args]) => spawnSync(command, [...args, '-c', 'exit 0']).status === 0,
);

describe('the text that sites run', () => {
  const programs = awkPrograms();

  it('is here', () => {
    expect(programs.length).toBeGreaterThan(40);
    expect(AWKS.length).toBeGreaterThanOrEqual(2);
    expect(SHELLS.length).toBeGreaterThanOrEqual(3);
  });

  it.each(AWKS.map((words) => words.join(' ')))('its awk programs are %s', (message) => {
    const [command = '', ...args] = message.split(' ');
    const wrong = programs.flatMap(([where, program]) => {
      const { status, stderr } = spawnSync(command, [...args, `BEGIN { exit }\n${program}`], {
        input: '',
        encoding: 'utf8',
      });
      // A program may exit with a status of its own; 2 is awk's.
      return status !== 2 && stderr === '' ? [] : [`${where}: ${stderr}`];
    });
    expect(wrong).toEqual([]);
  });

  it.each(SHELLS.map((words) => words.join(' ')))('is text for %s', (message) => {
    const [command = '', ...args] = message.split(' ');
    const wrong = SCRIPTS.flatMap((name) => {
      const { stderr, status } = spawnSync(command, [...args, '-n', join(SRC, name)], { encoding: 'utf8' });
      return status === 0 && stderr === '' ? [] : [`${name}: ${stderr}`];
    });
    expect(wrong).toEqual([]);
  });
});

describe('an answer means the same everywhere', () => {
  const ours = (text: string): string => text.replace(/(Job_Name = |<JB_name>|^jobname +)/gm, '$1gryphus.a.');
  const sgeIds = [...fixture('sge/qacct.txt').matchAll(/^jobnumber +(\d+)/gm)].map(([, id]) => id).join(' ');
  const reasons = 'job_number:                 7\nscheduling info:            queue instance "all.q@n1" is full\n';
  const waiting = `<?xml?>\n<job_list state="pending">\n<JB_job_number>7</JB_job_number>\n<JB_name>gryphus.a.1.0.1.1</JB_name>\n<state>qw</state>\n<queue_name></queue_name>\n</job_list>\n</job_info>\n`;
  const bacct = `Job <12[3]>, Job Name <gryphus.a.1.0.1.1>, User <u>, Project <default>, Command\n                     <x>\nMon Nov 20: Completed <exit>; TERM_RUNLIMIT: job killed.\n`;
  const cases: [string, Record<string, string>, string][] = [
    ['pbs', { qstat: ours(fixture('pbs/qstat-f.txt')) }, 'backend_queue; backend_account 1'],
    ['pbs', { pbsnodes: fixture('pbs/pbsnodes-a.txt') }, 'backend_capacity'],
    ['torque', { qstat: ours(fixture('torque/qstat-f.txt')) }, 'backend_queue'],
    ['torque', { qstat: ours(fixture('torque/qstat-f-t.txt')) }, 'backend_queue'],
    [
      'torque',
      { pbsnodes: 'n1\n     state = free\n     np = 8\n     jobs = 0-2,5/1.s, 3/2[1].s\n' },
      'backend_capacity',
    ],
    ['torque', { qstat: '    idle_slot_limit = 40\n' }, 'find_array_limit; say "$ARRAY_LIMIT"'],
    ['sge', { qstat: ours(fixture('sge/qstat-xml.txt')) }, 'backend_queue'],
    ['sge', { qacct: ours(fixture('sge/qacct.txt')) }, `backend_account ${sgeIds}`],
    [
      'sge',
      {},
      `qstat() { case $* in *-xml*) printf '%s' '${waiting}' ;; *) printf '%s' '${reasons}' ;; esac; }; backend_queue`,
    ],
    [
      'lsf',
      { bjobs: 'JOB_NAME|JOBID|STAT\ngryphus.a.1.a[3]|12|PEND|-|-|-|why|not\ngryphus.a.2|13|RUN|-|h|-|-\n', bacct },
      'backend_queue; backend_account 12',
    ],
    [
      'lsf',
      { bhosts: 'HOST_NAME STATUS JL/U MAX NJOBS RUN\nh1 ok - 8 3 3\nh2 closed_Full - 4 4 4\nh3 unavail - 4 0 0\n' },
      'backend_capacity',
    ],
    [
      'condor',
      {
        condor_q: 'gryphus.a.1.0.1.1 4 0 5 0 1 0 undefined via condor_hold (by user x)\n',
        condor_status: '6 Unclaimed\n1 Claimed\n',
      },
      'backend_queue; backend_capacity',
    ],
    [
      'slurm',
      { sacct: '7_3|TIMEOUT|0:15|a|b|n1|/x/groups/gryphus.a.1.0.1.1.a\n8|FAILED|3:0|a|b|n1|/x/jobs/a.1.1.1\n' },
      'backend_account 7 8',
    ],
    [
      'sge',
      {},
      `cd "$T"; . "$BIN/../jobmanager/arrays.sh"; mkdir -p groups/gryphus.a.1.0.1.1.a; i=0
      while [ $i -lt 12 ]; do echo "a.1.$i.1 1"; i=$((i+1)); done >groups/gryphus.a.1.0.1.1.a/map
      printf 'gryphus.a.1.0.1.1.a[%s] 3.[%s] qw||\\n' 1,3-7:2,9 1,3-7:2,9 2 2 | elements`,
    ],
  ];

  it.each(cases)('%s: %#', (backend, answers, call) => {
    const said = shellHalf(backend, answers, call);
    expect(said.join('')).not.toBe('');
    for (const awk of AWKS) expect([awk, shellHalf(backend, answers, call, {}, { awk })]).toEqual([awk, said]);
    for (const sh of SHELLS) expect([sh, shellHalf(backend, answers, call, {}, { sh })]).toEqual([sh, said]);
  });
});
