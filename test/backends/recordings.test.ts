import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { condor, condorRefusal } from '../../src/backends/condor.ts';
import type { Backend } from '../../src/backends/contract.ts';
import { lsf, lsfRefusal } from '../../src/backends/lsf.ts';
import { pbs, pbsRefusal } from '../../src/backends/pbs.ts';
import { sge } from '../../src/backends/sge.ts';
import { torque, torqueRefusal } from '../../src/backends/torque.ts';
import { spec } from '../conformance/kit.ts';
import { fixture, refusals, shellHalf } from './recorded.ts';

/** Lines `TAG ID REST`, by the name that the job had when it was recorded. */
function entries(backend: Backend, lines: readonly string[]) {
  return Object.fromEntries(
    lines.map((line) => {
      const [tag = '', id = '', ...rest] = line.split(' ');
      return [tag.replace(/^gryphus\.a\./, ''), { id, ...backend.queueEntry(rest.join(' ')) }] as const;
    }),
  );
}
const ours = (text: string): string => text.replace(/(Job_Name = |<JB_name>|^jobname +)/gm, '$1gryphus.a.');

/**
 * Statuses with which OpenPBS reports that it has as many jobs, or as much of a resource in them, as it accepts from
 * one user.
 */
const FULL = new Map([
  [38, 'site-full'],
  [39, 'site-full'],
]);
describe('OpenPBS, recorded', () => {
  const text = ours(fixture('pbs/qstat-f.txt'));
  const [heading, ...lines] = shellHalf('pbs', { qstat: text }, 'backend_queue');
  const seen = entries(pbs, lines);

  it('every state is known', () => {
    expect(heading).toBe('TAG');
    expect(lines).toHaveLength(text.match(/^Job Id/gm)?.length ?? 0);
    expect(Object.entries(seen).filter(([, entry]) => entry.is === 'unclear')).toEqual([]);
    expect(seen).toMatchObject({
      queued: { id: '28.pbshead', is: 'waiting', message: 'Not Running: Not enough free nodes available' },
      running: { is: 'running', host: 'pbshead' },
      held: { is: 'held' },
      waiting: { is: 'waiting' },
      dependent: { is: 'held' },
      toobig: { is: 'held' },
    });
    expect(seen['toobig']).toHaveProperty('message', expect.stringMatching(/^Can Never Run: .*ncpus/));
  });

  it('every end is told apart, and long values are whole', () => {
    const by = Object.fromEntries(
      Object.entries(seen).flatMap(([name, entry]) => (entry.is === 'ended' ? [[name, entry.by]] : [])),
    );
    expect(by).toEqual({
      'ok.sh': 'itself',
      'nonzero.sh': 'itself',
      'exit255.sh': 'itself',
      'sigself.sh': 'itself',
      'sigchild.sh': 'itself',
      'walltime.sh': 'timeout',
      walltimetrap: 'timeout',
      qdelqueued: 'cancelled',
      'qdelrunning.sh': 'cancelled',
      'trapterm.sh': 'cancelled',
      badshell: 'itself',
      badout: 'itself',
    });
    expect(seen['walltime.sh']).toHaveProperty(
      'message',
      expect.stringContaining('and exceeded resource walltime (exit status -29)'),
    );
  });

  it('its history gives the same verdicts', () => {
    const account = shellHalf('pbs', { qstat: text }, 'backend_account 46.pbshead').flatMap(
      (line) => pbs.accountOf?.(line) ?? [],
    );
    expect(account.find(({ id }) => id === '46.pbshead')).toMatchObject({ by: 'timeout' });
    expect(account).toHaveLength(12);
  });

  it('an element that waits is held with its array, and waits for its reason', () => {
    const array = (id: number, state: string, comment: string, elements: string): string =>
      `Job Id: ${id}[].pbshead\n    Job_Name = gryphus.a.${id}.0.1.1.a\n    job_state = ${state}\n${comment}\n${elements}`;
    const element = (id: string, state: string, more = ''): string =>
      `Job Id: ${id}.pbshead\n    Job_Name = gryphus.a.${id.split('[')[0]}.0.1.1.a\n    job_state = ${state}\n${more}\n`;
    const never = '    comment = Can Never Run: Insufficient amount of resource: ncpus (R: 64 A: \n\t8 T: 8)\n';
    const listing = [
      array(60, 'H', '', element('60[1]', 'Q') + element('60[2]', 'X', '    comment = Subjob finished\n')),
      array(61, 'Q', never, element('61[1]', 'Q')),
      array(62, 'B', '', element('62[1]', 'Q') + element('62[2]', 'R', '    exec_host = n1/0*8\n')),
    ].join('');
    const lines = shellHalf('pbs', { qstat: listing }, 'backend_queue').slice(1);
    expect(lines.map((line) => line.split(' ')[0])).toEqual([
      'gryphus.a.60.0.1.1.a[1]',
      'gryphus.a.60.0.1.1.a[2]',
      'gryphus.a.61.0.1.1.a[1]',
      'gryphus.a.62.0.1.1.a[1]',
      'gryphus.a.62.0.1.1.a[2]',
    ]);
    expect(lines.map((line) => pbs.queueEntry(line.split(' ').slice(2).join(' ')))).toMatchObject([
      { is: 'held' },
      { is: 'ended', by: 'itself' },
      { is: 'held', message: 'Can Never Run: Insufficient amount of resource: ncpus (R: 64 A: 8 T: 8)' },
      { is: 'waiting' },
      { is: 'running', host: 'n1' },
    ]);
  });

  it('deletes what it can in a bounded time where a frozen node answers no qdel', () => {
    const ids = Array.from({ length: 40 }, (_, i) => i + 1);
    const qstat = ids
      .map((id) => `Job Id: ${id}.n\n    Job_Name = gryphus.a.1.${id}.1.1\n    job_state = R\n`)
      .join('');
    const tags = ids.map((id) => `gryphus.a.1.${id}.1.1`).join(' ');
    const hangs = 'bounded() { case $2 in qdel) say "$1 $3" >>"$T/asked" && return 137 ;; esac; shift && "$@"; }';
    const call = `elements() { cat; }\n${hangs}\nbackend_cancel TERM '${tags}' 2>/dev/null\nsay "$?"\ncat "$T/asked"`;
    const [status, ...asked] = shellHalf('pbs', { qstat }, call);
    expect(status).toBe('1');
    expect(asked.slice(0, 3)).toEqual(['60 1.n', '3 2.n', '3 3.n']);
    expect(asked).toHaveLength(21);
  });

  it.each([
    [1, 'qsub: Request rejected.  Reason: No active allocation found for project x', 'never'],
    [44, 'qsub: job needs -l filesystems', 'never'],
    [38, "qsub: would exceed queue generic's per-user limit of jobs in 'Q' state", 'later'],
    [99, "qsub: Maximum number of jobs in 'Q' state for user u already in complex", 'later'],
  ])('what a hook or a limit says, with status %i, is an answer: %s', (status, message, kind) => {
    expect(pbsRefusal(status, message)).toMatchObject({ kind, message: message.slice(6) });
  });
  it.each([
    [255, 'qsub: End of File'],
    [183, 'qsub: Batch protocol error'],
    [255, ''],
    [1, 'Connection reset by peer'],
  ])('what may have submitted, with status %i, is none: %s', (status, message) => {
    expect(pbsRefusal(status, message)).toBe('unclear');
  });

  it.each(refusals('pbs/qsub-refusals.tsv'))('a refusal with status %i is understood: %s', (status, message) => {
    const later = [38, 39, 160, 162, 173].includes(status);
    expect(pbsRefusal(status, message)).toMatchObject({ kind: later ? 'later' : 'never' });
    expect(pbsRefusal(status, message)).toHaveProperty('code', FULL.get(status) ?? expect.not.stringMatching('full'));
  });
});

describe("Torque's commands over Slurm, recorded", () => {
  it('a job that runs, and one that is complete', () => {
    const [heading, ...lines] = shellHalf('torque', { qstat: ours(fixture('torque/qstat-f.txt')) }, 'backend_queue');
    expect(heading).toBe('TAG');
    expect(entries(torque, lines)).toMatchObject({
      longjob: { id: '8', is: 'running', host: 'n2' },
      'job.sh': { id: '1', is: 'ended', by: 'itself' },
    });
  });
  it('a status of its own is no end by itself', () => {
    expect(torque.queueEntry('C||271||')).toMatchObject({ is: 'ended', by: 'cancelled' });
    expect(torque.queueEntry('C||-11||')).toMatchObject({ is: 'ended', by: 'timeout' });
    expect(torque.queueEntry('C||3||')).toMatchObject({ is: 'ended', by: 'itself' });
  });
  it('says the words of the command behind it', () => {
    const message = `There was an error running the Slurm sbatch command.\nThe command was:\n'/x/sbatch -e a -p q job 2>&1'\nand the output was:\n'sbatch: error: invalid partition specified: q\n sbatch: error: Batch job submission failed: Invalid partition name specified\n'`;
    expect(torqueRefusal(1, message)).toEqual({
      kind: 'never',
      code: 'site-refused',
      message: 'invalid partition specified: q; Batch job submission failed: Invalid partition name specified',
    });
  });
});

describe('Torque 6.1.3, recorded', () => {
  const [heading, ...lines] = shellHalf('torque', { qstat: ours(fixture('torque/qstat-f-t.txt')) }, 'backend_queue');
  const seen = entries(torque, lines);

  it('every state is known, and what its array keeps back waits', () => {
    expect(heading).toBe('TAG');
    expect(Object.entries(seen).filter(([, entry]) => entry.is === 'unclear')).toEqual([]);
    expect(seen).toMatchObject({
      toobig: { id: '40.tqhead', is: 'running', host: 'tqhead' },
      queued: { is: 'held' },
      deferred: { is: 'waiting' },
      'arr[1]': { id: '44[1].tqhead', is: 'running' },
      'arr[3]': { id: '44[3].tqhead', is: 'waiting' },
    });
    expect(torque.idOf('44[3].tqhead')).toBe('44[3].tqhead');
  });

  it('every end is told apart', () => {
    const by = Object.fromEntries(
      Object.entries(seen).flatMap(([name, entry]) => (entry.is === 'ended' ? [[name, entry.by]] : [])),
    );
    expect(by).toEqual({
      ok: 'itself',
      nonzero: 'itself',
      exit255: 'itself',
      sigself: 'itself',
      sigterm: 'itself',
      qdelrun: 'cancelled',
      traprun: 'cancelled',
      walltime: 'timeout',
      waltrap: 'timeout',
      memkill: 'itself',
      dependent: 'cancelled',
      qdelheld: 'cancelled',
    });
    expect(seen['qdelrun']).toHaveProperty('message', 'exit status 271');
    expect(seen['dependent']).toHaveProperty('message', expect.stringContaining('dependency on job 35.tqhead'));
  });

  it.each([
    ['Version: 6.1.3', /^-n -W x=NACCESSPOLICY:SINGLEJOB -N t /],
    ['version: 2.5.13', /^-W x=NACCESSPOLICY:SINGLEJOB -N t /],
    ['Unknown option: version', /^-W x=NACCESSPOLICY:SINGLEJOB -N t /],
  ])('a host of its own is asked for in words of its own: %s', (version, words) => {
    const qsub = `qsub() { case $1 in --version) echo '${version}' ;; *) echo "$*" ;; esac; }; job_script() { SCRIPT=/x; }`;
    const submit = 'backend_start; TAG=t; backend_submit k 1 -W x=NACCESSPOLICY:SINGLEJOB; say "$ID"';
    expect(shellHalf('torque', {}, `${qsub}; ${submit}`)[0]).toMatch(words);
  });

  it('an array is as large as its elements come into the queue at once', () => {
    const limit = (server: string): string | undefined =>
      shellHalf('torque', { qstat: server }, 'find_array_limit; say "$ARRAY_LIMIT"').at(-1);
    expect(limit('Server: tqhead\n    keep_completed = 300\n')).toBe('300');
    expect(limit('Server: tqhead\n    max_job_array_size = 5000\n    idle_slot_limit = 40\n')).toBe('40');
  });

  it.each(refusals('torque/qsub-refusals.tsv'))('a refusal with status %i is understood: %s', (status, message) => {
    const kind = [33, 111, 175, 200, 228].includes(status) ? 'later' : 'never';
    expect(torqueRefusal(status, message)).toMatchObject({ kind });
    if (status === 200 || status === 228) expect(torqueRefusal(status, message)).toMatchObject({ code: 'site-full' });
    expect(JSON.stringify(torqueRefusal(status, message))).not.toMatch(/usage|exiting/i);
  });
  it.each([
    [152, 'qsub: submit error (Pbs Server is currently too busy to service this request. Please retry this request.)'],
    [1, 'qsub: submit error (Request not allowed: Server shutting down)'],
  ])('what passes, with status %i, is no refusal for good: %s', (status, message) => {
    expect(torqueRefusal(status, message)).toMatchObject({ kind: 'later' });
  });
  it.each([
    [210, 'Connection to server timed out. Trying againqsub: submit error (Bad DIS based Request Protocol)'],
    [170, 'qsub: submit error (Time out)'],
    [204, 'qsub: submit error (Premature End of File)'],
  ])('what may have submitted, with status %i, is none: %s', (status, message) => {
    expect(torqueRefusal(status, message)).toBe('unclear');
  });
});

describe('Grid Engine, recorded', () => {
  it('every state is known', () => {
    const [heading, ...lines] = shellHalf('sge', { qstat: ours(fixture('sge/qstat-xml.txt')) }, 'backend_queue');
    expect(heading).toBe('TAG');
    expect(entries(sge, lines)).toMatchObject({
      running: { id: '7', is: 'running', host: 'localhost' },
      toobig: { is: 'waiting' },
      exit100: { is: 'held' },
      held: { is: 'held' },
      begin: { is: 'waiting' },
    });
  });

  it('says why a job waits, and why one is in error', () => {
    const job = (id: number, state: string): string =>
      `<job_list state="pending">\n<JB_job_number>${id}</JB_job_number>\n<JB_name>gryphus.a.${id}.0.1.1</JB_name>\n<state>${state}</state>\n<queue_name></queue_name>\n</job_list>\n`;
    const listing = `<job_info>\n${job(7, 'qw')}${job(8, 'Eqw')}${job(9, 'qw')}</job_info>\n`;
    const reasons = `==============\njob_number:                 7\nscheduling info:            (-l none) cannot run in queue "b" because it is full\n                            queue instance "all.q@n1" dropped because it is full\n==============\njob_number:                 8\nerror reason    1:          can't get password entry\nscheduling info:            cannot run in queue\n==============\njob_number:                 9\nscheduling info:            cannot run in PE "smp" because it only offers 1 slots\n`;
    const qstat = `qstat() { case $* in *-xml*) printf '%s' '${listing}' ;; *) printf '%s' "$REASONS" ;; esac; }`;
    const [, ...lines] = shellHalf('sge', {}, `${qstat}; backend_queue`, { REASONS: reasons });
    expect(entries(sge, lines)).toMatchObject({
      '7.0.1.1': { is: 'waiting' },
      '8.0.1.1': { is: 'held', message: "Eqw: can't get password entry" },
      '9.0.1.1': { is: 'waiting', message: 'qw: cannot run in PE "smp" because it only offers 1 slots' },
    });
  });

  it('half an answer is none', () => {
    const text = fixture('sge/qstat-xml.txt');
    expect(shellHalf('sge', { qstat: text.slice(0, -30) }, 'backend_queue')[0]).not.toBe('TAG');
    expect(shellHalf('sge', { qstat: '' }, 'backend_queue')).not.toContain('TAG');
    const arrays = fixture('sge/qstat-arrays.xml');
    expect(shellHalf('sge', { qstat: arrays }, 'backend_queue')[0]).toBe('TAG');
    const short = arrays.replace('10-12:1', '10-...');
    expect(shellHalf('sge', { qstat: short }, 'backend_queue')[0]).toContain('tasks 1,2,4-6:1,10-...');
  });

  it('every end is told apart', () => {
    const text = ours(fixture('sge/qacct.txt'));
    const ids = [...text.matchAll(/^jobnumber +(\d+)/gm)].map(([, id]) => id).join(' ');
    const lines = shellHalf('sge', { qacct: text }, `backend_account ${ids}`);
    const by = Object.fromEntries(lines.map((line) => [line.split('|')[1]?.slice(10), sge.accountOf?.(line)?.by]));
    expect(by).toMatchObject({
      failed: 'itself',
      signalled: 'cancelled',
      timeout: 'timeout',
      softtmo: 'timeout',
      canrun: 'cancelled',
      baddir: 'cannot-start',
    });
  });

  it.each([
    ['488.555MB', '1', '-l h_vmem=300M,h_rt=600', 'out-of-memory'],
    ['488.555MB', '2', '-q main.q -l h_vmem=300M -pe smp 2', 'timeout'],
    ['1.2G', '1', '-l h_rt=600,h_vmem=1000m', 'out-of-memory'],
    ['9.750MB', '1', '-l h_rt=20', 'timeout'],
    ['9.750MB', '1', '-l h_rt=20,h_vmem=INFINITY', 'timeout'],
  ])('the code of a limit is of memory where more was used: %s, %s slots, %s', (vmem, slots, category, by) => {
    const failed = '37  : qmaster enforced h_rt, h_cpu, or h_vmem limit|137                  (Killed)';
    const found = sge.accountOf?.(`5.2|gryphus.a.9.1.1.1|${failed}|t|t|localhost|${vmem}|${slots}|${category}`);
    expect(found).toMatchObject({ by, message: expect.stringContaining('limit, exit 137 (Killed)') });
  });

  it.each(refusals('sge/qsub-refusals.tsv'))('a refusal with status %i is understood: %s', (status, message) => {
    const kind = message.includes('got send error') ? 'later' : 'never';
    expect(sge.refusalOf(status, message)).toMatchObject({ kind });
  });
});

describe('HTCondor, recorded', () => {
  it.each([
    ['1 0 undefined undefined undefined undefined', { is: 'waiting' }],
    ['2 1 undefined undefined slot1_1@node1.htc.example undefined', { is: 'running', host: 'node1.htc.example' }],
    [
      '5 0 1 0 undefined via condor_hold (by user htcuser)',
      { is: 'held', message: 'via condor_hold (by user htcuser) (code 1)' },
    ],
    ['3 1 undefined undefined slot1_1@node1.htc.example undefined', { is: 'running' }],
    [
      '5 1 34 0 undefined Error from slot1_1@node1: Job has gone over cgroup memory limit of 128 megabytes.',
      { is: 'held', by: 'out-of-memory' },
    ],
    ['5 1 46 0 undefined The job exceeded allowed execute duration of 0+00:01:00', { is: 'held', by: 'timeout' }],
    [
      '5 1 21 102 undefined Error from slot1_1@localhost.localdomain: memory usage exceeded request_memory',
      { is: 'held', by: 'out-of-memory' },
    ],
    ['5 1 21 0 undefined Error from slot1_1@localhost.localdomain: x', { is: 'held' }],
    ['9 1 undefined undefined undefined undefined', { is: 'unclear' }],
  ])('a job: %s', (rest, entry) => {
    expect(condor.queueEntry(rest)).toMatchObject(entry);
  });

  it.each([
    ['44 0 gryphus.a.1.0.1.1 3 2 true 15 undefined via condor_rm (by user htcuser)', 'cancelled'],
    ['43 0 gryphus.a.1.0.1.1 4 2 false undefined 3 undefined', 'itself'],
    [
      "65 0 gryphus.a.1.0.1.1 3 2 true 15 undefined The job attribute PeriodicRemove expression 'x' evaluated to TRUE",
      'timeout',
    ],
    [
      "65 0 gryphus.a.1.0.1.1 3 1 true 15 undefined The job attribute PeriodicRemove expression 'x' evaluated to TRUE",
      'preempted',
    ],
  ])('an end: %s', (line, by) => {
    expect(condor.accountOf?.(line)).toMatchObject({ by, key: 'a.1.0.1' });
  });

  it.each(refusals('htcondor/submit-refusals.tsv'))('a refusal with status %i is understood: %s', (status, message) => {
    expect(condorRefusal(status, message)).toMatchObject({
      kind: message.includes("Can't find address") ? 'later' : 'never',
    });
  });

  it('a requirement of the pool that is not met is a refusal, a lost connection is none', () => {
    const commit = '\nERROR: Failed to commit job submission into the queue.\n';
    expect(condorRefusal(1, `${commit}ERROR: This pool wants a project.\n`)).toEqual({
      kind: 'never',
      code: 'site-refused',
      message: 'This pool wants a project.',
    });
    // It speaks of the job, not of how many there are.
    expect(condorRefusal(1, `${commit}ERROR: request_memory exceeds the 4000 MB of this pool\n`)).toEqual({
      kind: 'never',
      code: 'site-refused',
      message: 'request_memory exceeds the 4000 MB of this pool',
    });
    expect(condorRefusal(1, `${commit}ERROR: Failed to connect to schedd.\n`)).toBe('unclear');
    expect(condorRefusal(1, commit)).toBe('unclear');
  });

  it('the first job of a terse answer is the id', () => {
    expect([condor.idOf('4.0 - 4.0'), condor.idOf('Submitting job(s).')]).toEqual(['4.0', undefined]);
  });
});

describe('LSF, by its manual', () => {
  it('an id, and a refusal', () => {
    expect(lsf.idOf('Job <12> is submitted to default queue <normal>.')).toBe('12');
    expect(lsfRefusal(255, 'x: No such queue. Job not submitted.')).toMatchObject({ kind: 'never' });
    expect(lsfRefusal(137, 'LSF is down. Please wait ...')).toBe('unclear');
    // The daemon died while handling the request.
    const lost = 'Failed in an LSF library call: Failed in sending/receiving a message: Connection reset by peer.';
    expect(lsfRefusal(255, `${lost} Job not submitted.`)).toBe('unclear');
  });
  it('a termination reason says who ended it', () => {
    expect(
      lsf.queueEntry('EXIT|143|hosta|TERM_RUNLIMIT: job killed after reaching LSF run time limit|-'),
    ).toMatchObject({
      is: 'ended',
      by: 'timeout',
    });
    expect(lsf.queueEntry('EXIT|3|4*hosta:hostb|-|-')).toMatchObject({ is: 'ended', by: 'itself' });
    expect(lsf.queueEntry('EXIT|-|-|-|-')).toMatchObject({ is: 'ended', by: 'cancelled' });
    expect(lsf.accountOf?.('7|gryphus.a.1.0.1.1|Completed <exit>; TERM_MEMLIMIT: x.')).toMatchObject({
      by: 'out-of-memory',
    });
  });
});

it('an LSF that is too old is called that', () => {
  const bjobs = `bjobs() { printf "bjobs: invalid option -- 'o'\\nUsage: bjobs [-h] [-V]\\n" >&2; return 255; }`;
  expect(shellHalf('lsf', {}, `${bjobs}; backend_queue 2>&1`)).toEqual([
    'its bjobs has no -o: LSF 9.1.3 or later is needed',
  ]);
});

it.each(refusals('lsf/bsub-refusals.tsv'))('OpenLava 4.0 refuses with status %i, for good: %s', (status, message) => {
  expect(lsfRefusal(status, message)).toMatchObject({ kind: 'never' });
});

describe.each([pbs, torque, sge, condor, lsf])('$name', (backend) => {
  it('takes no word that nobody knows for an end', () => {
    const known = /^(F|C|X|3|4|DONE|EXIT)[| ]/;
    fc.assert(
      fc.property(fc.string(), (rest) => {
        fc.pre(!known.test(`${rest} `));
        expect(backend.queueEntry(rest).is).not.toBe('ended');
      }),
    );
  });

  it('takes no failure that nobody knows for a refusal', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[q-z ]{0,20}$/), (message) => {
        expect(backend.refusalOf(1, message)).toBe('unclear');
      }),
    );
    expect(backend.refusalOf(137, '')).toBe('unclear');
  });

  it('asks for what the job asks for', () => {
    const job = spec('a.1.0.1', {
      resources: { cpus: 2, memoryMb: 100.5, diskKb: 2048, gpus: 1, walltimeSeconds: 61 },
      batch: { queue: 'long', project: 'p1', extraArgs: ['-x', 'y'] },
    });
    expect(backend.submitWords(job)).toMatchSnapshot();
  });
});
