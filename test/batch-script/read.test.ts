import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  describeScript,
  type Destination,
  DIALECTS,
  isScript,
  readScript,
  SYSTEMS,
} from '../../src/batch-script/api.ts';
import { printIndices } from '../../src/batch-script/array.ts';
import { batchScriptsPage } from '../../src/batch-script/docs.ts';
import { allIndices, clockSeconds, commaList, indices, slurmSeconds } from '../../src/batch-script/values.ts';
import { GryphusError } from '../../src/errors.ts';
import { parseDependency, printDependency } from '../../src/job/dependency.ts';

const POOL: Destination = { kind: 'pool', name: 'pool', batch: 'pool', shared: true };
const BY = { cwd: '/work', home: '/home/u', user: 'u', uid: 7, host: 'h', path: '/bin', shell: '/bin/sh' };
const site = (batch: string, shared = false): Destination => ({ kind: 'site', name: 'c1', batch, shared });

function translate(text: string, to: Destination = POOL, words: readonly string[] = []) {
  const script = readScript(text, { file: 'job.sh', words });
  return describeScript(script, { executable: '/spool/job.sh', fileName: 'job.sh', args: [], to, by: BY });
}
const lines = (text: string, to: Destination = POOL, words: readonly string[] = []) =>
  translate(text, to, words).text.split('\n');

describe('a script', () => {
  it.each([
    ['#!/bin/bash\necho', true],
    ['#!/usr/bin/env python3\n', true],
    ['#PBS -N x\nsleep 1', true],
    ['#!/usr/bin/env condor_submit\nqueue', false],
    ['# a comment\nexecutable = x\nqueue', false],
  ])('is recognized: %j', (text, is) => expect(isScript(text)).toBe(is));

  it('for Slurm becomes a description', () => {
    const given = [
      '#!/bin/bash',
      '#SBATCH --job-name=sim -t 1-02:03 # a day',
      '#SBATCH --cpus-per-task 4 --mem-per-cpu=2G --gres=gpu:2',
      '#SBATCH -a 1-9:2%2 -o %x-%A_%3a.%j.log -e err',
      '#SBATCH --mail-type=END,FAIL --mail-user=me@example.org --chdir=sub',
      'srun x',
      '#SBATCH --job-name=late',
    ].join('\n');
    expect(lines(given)).toEqual(
      expect.arrayContaining([
        'batch_name = sim',
        'batch_runtime = 93780',
        'request_cpus = 4',
        'request_memory = 8192',
        'request_gpus = 2',
        'initialdir = /work/sub',
        'output = sim-$(Cluster)_$INT(array_number,%03d).$INT(array_job).log',
        'error = err',
        'notification = Always',
        'notify_user = me@example.org',
        'array_number = 1 + $(Process) * 2',
        'max_materialize = 2',
        'getenv = true',
        'queue 5',
      ]),
    );
    expect(translate(given).warnings).toEqual([]);
  });

  it('is given to a site of its own system in its own words', () => {
    const given = '#!/bin/sh\n#SBATCH -N 2 --ntasks-per-node=4 --mem-per-cpu=1G -p long -A proj -C "a&b"\n';
    expect(lines(given, site('slurm'))).toEqual(
      expect.arrayContaining([
        'grid_resource = batch slurm c1',
        'request_cpus = 1',
        'request_memory = undefined',
        'batch_queue = long',
        'batch_project = proj',
        "batch_extra_submit_args = --nodes=2 --ntasks=8 --ntasks-per-node=4 --mem-per-cpu=1024M -C 'a&b'",
      ]),
    );
    expect(translate(given, site('slurm')).warnings).toEqual([]);
    // The environment of this machine means nothing there.
    expect(lines(given, site('slurm')).some((line) => line.startsWith('getenv'))).toBe(false);
  });

  it('with a queue that the pool does not have says so, and knows what it depends on', () => {
    const given = '#!/bin/sh\n#SBATCH -p "no such" -d afterok:7:8\n';
    expect(translate(given).warnings.map(({ message }) => message)).toEqual([
      'The queue "no such" has no effect: the pool has none, and no site has this name.',
    ]);
    expect(translate(given, site('slurm')).warnings).toEqual([]);
    expect(lines(given).find((line) => line.startsWith('environment'))).toContain('SLURM_JOB_DEPENDENCY=afterok:7:8');
  });

  it.each([
    ['#SBATCH -N 2 --ntasks-per-node=4 -c 2 --mem-per-cpu=1G --gpus-per-node=1', 'pbs', [2, 4, 8, 8192, 1]],
    ['#SBATCH -N 3 -n 6 --mem=2G --gpus=6', 'lsf', [3, 2, 2, 2048, 2]],
    ['#SBATCH -N 2', 'sge', [2, 1, 1, undefined, undefined]],
    ['#PBS -l select=2:ncpus=8:mpiprocs=4:mem=4gb:ngpus=2', 'slurm', [2, 4, 8, 4096, 2]],
    ['#PBS -l select=4:ncpus=8', 'slurm', [4, 1, 8, undefined, undefined]],
    ['#PBS -l nodes=2:ppn=4 -l mem=8gb', 'slurm', [2, 4, 4, 4096, undefined]],
  ] as const)('of several nodes is a parallel job at a site of another system: %s', (line, batch, wanted) => {
    const made = lines(`#!/bin/sh\n${line}\n`, site(batch));
    const amount = (command: string) => {
      const text = made.find((one) => one.startsWith(`${command} = `))?.slice(command.length + 3);
      return text === undefined || text === 'undefined' ? undefined : Number(text);
    };
    expect(['machine_count', 'ranks_per_node', 'request_cpus', 'request_memory', 'request_gpus'].map(amount)).toEqual(
      wanted,
    );
  });

  it('of several nodes is a parallel job of the pool, where it starts once, on files that all nodes share', () => {
    const made = lines('#!/bin/sh\n#SBATCH -N 2 --ntasks-per-node=4 -c 2\n');
    expect(made).toEqual(
      expect.arrayContaining([
        'universe = parallel',
        'should_transfer_files = NO',
        'executable = /bin/sh',
        'machine_count = 2',
        'ranks_per_node = 4',
        'request_cpus = 8',
      ]),
    );
    const environment = made.find((line) => line.startsWith('environment')) ?? '';
    for (const one of [
      'SLURM_NNODES=2',
      'SLURM_NTASKS=8',
      'SLURM_TASKS_PER_NODE=4(x2)',
      'SLURM_JOB_NODELIST=node[0-1]',
    ])
      expect(environment).toContain(one);
  });

  it.each([
    ['#PBS -l nodes=1:ppn=4+2:ppn=8', /3 nodes that differ, and site c1 \(slurm\) gets equal ones/],
    ['#PBS -l select=2:ncpus=8:mpiprocs=3', /3 processes on the 8 cores/],
  ])('of nodes that the site cannot give is refused: %s', (line, message) =>
    expect(() => translate(`#!/bin/sh\n${line}\n`, site('slurm'))).toThrow(message),
  );

  it('of tasks that its nodes cannot share evenly is refused at a site of another system', () =>
    expect(() => translate('#!/bin/sh\n#SBATCH -N 2 -n 5\n', site('pbs'))).toThrow(/5 tasks on 2 nodes/));

  it.each([
    ['#SBATCH --mail-type=BEGIN,END', 'BEGIN of --mail-type=BEGIN,END'],
    ['#PBS -m abe', 'b of -m abe'],
    ['#$ -m bea', 'b of -m bea'],
    ['#BSUB -B', '-B'],
  ])('that wants mail when a job begins is told that there is none: %s', (line, what) => {
    const { warnings } = translate(`#!/bin/sh\n${line}\n`);
    expect(warnings.map(({ line: at, message }) => `${at}: ${message}`)).toContain(
      `2: ${what} has no effect: there is no mail when a job begins.`,
    );
  });

  it('names its output after the machine, or the site, where it wants its node’s name', () => {
    const given = '#!/bin/sh\n#SBATCH -o slurm.%N.%j.out -e %%N.%3N\n';
    const at = (to: Destination) => ({
      streams: lines(given, to).filter((line) => /^(output|error) = /.test(line)),
      warnings: translate(given, to).warnings.map(({ message }) => message),
    });
    const told = (name: string) =>
      ['slurm.%N.%j.out', '%%N.%3N'].map((p) => `${p}: %N is ${name} here: the node is known only when the job runs.`);
    expect(at(POOL)).toEqual({
      streams: ['output = slurm.h.$(Cluster).out', 'error = %N.h'],
      warnings: told('h'),
    });
    expect(at(site('slurm'))).toEqual({
      streams: ['output = slurm.c1.$(Cluster).out', 'error = %N.c1'],
      warnings: told('c1'),
    });
    expect(translate('#!/bin/sh\n#SBATCH -o %%N.%j -e "a\\\\%N"\n').warnings).toEqual([]);
  });

  it('has one warning, with its line, for each option that means nothing where it runs', () => {
    const { warnings } = translate('#!/bin/sh\n\n#SBATCH --qos=high\n#SBATCH --requeue\n#PBS -l mem=1gb\n');
    expect(warnings.map(({ line, message }) => `${line}: ${message.slice(0, 30)}`)).toEqual([
      "5: The script is read as Slurm's:",
      '4: --requeue has no effect: a job',
      '3: --qos=high has no effect in th',
    ]);
  });

  it.each([
    ['#!/bin/sh\n#SBATCH --nosuch=1', 'on Line 2 of job.sh: Slurm has no option --nosuch'],
    ['#!/bin/sh\n#SBATCH --time=soon', "on Line 2 of job.sh: --time=soon: 'soon' is not a time"],
    ['#!/bin/sh\n#SBATCH --ntasks', 'on Line 2 of job.sh: --ntasks needs a value'],
    [
      '#!/bin/sh\n#SBATCH --open-mode=append -o all.log',
      'on Line 2 of job.sh: --open-mode=append: the job would replace all.log',
    ],
    ['#!/bin/sh\n#SBATCH --open-mode=append -a 1-3 -o %A.log', 'the job would replace %A.log'],
    ['#!/bin/sh\n#SBATCH --export-file=vars', 'is not supported: name the variables with --export'],
    ['#!/bin/sh\n#$ -S bash', "on Line 2 of job.sh: -S bash: 'bash' is not the whole path of a shell"],
    ['#!/bin/sh\n#SBATCH -d afterwards:1', "The dependency 'afterwards:1' is not understood"],
    ['#!/bin/sh\n#SBATCH --job-name "x', 'on Line 2 of job.sh: a quote is not closed'],
    ['#!/bin/sh\n#PBS -Q 1', 'on Line 2 of job.sh: PBS has no option -Q'],
    ['#!/bin/sh\r\n#PBS -N x\r\n', 'job.sh has DOS line endings'],
  ])('that is wrong is refused: %j', (text, message) => expect(() => translate(text)).toThrow(message));

  it.each([
    ['--open-mode=append', /^output = slurm-/],
    ['--open-mode=a -o out.%j.log', /^output = out\.\$\(Cluster\)\.log$/],
    ['--open-mode=append -a 1-3 -o %A_%a.log', /^output = \$\(Cluster\)_\$\(array_index\)\.log$/],
    ['--open-mode=append -o all.log --open-mode=truncate', /^output = all\.log$/],
  ])('that adds to output files may do so where each job has its own: %s', (options, output) =>
    expect(lines(`#!/bin/sh\n#SBATCH ${options}\n`)).toContainEqual(expect.stringMatching(output)),
  );

  it.each([
    ['#SBATCH --array=[1-3]', 'queue 3', '1-3'],
    ['#SBATCH --array=[1,3,5-6]%2', 'queue array_index in (1 3 5 6)', '1,3,5-6%2'],
    ['#SBATCH --array=5,1-3,2', 'queue array_index in (1 2 3 5)', '1,2,3,5'],
    ['#$ -t 7', 'queue 1', '7'],
    ['#PBS -t 7', 'queue 1', '7'],
  ])('has the tasks that its system gives it: %s', (line, queue, array) =>
    expect(lines(`#!/bin/sh\n${line}\n`)).toEqual(expect.arrayContaining([queue, `+GryphusArray = "${array}"`])),
  );

  it('for Slurm has no more nodes than tasks', () => {
    const made = lines('#!/bin/sh\n#SBATCH -N 4 -n 2\n');
    expect(made).toEqual(expect.arrayContaining(['machine_count = 2', 'ranks_per_node = 1']));
    expect(lines('#!/bin/sh\n#SBATCH -N 2 -n 1\n')).not.toContainEqual(expect.stringMatching('machine_count'));
  });

  it('for LSF may count nodes', () => {
    const given = '#!/bin/bash\n#BSUB -P abc -W 10 -nnodes 2 -alloc_flags "smt4 nvme"\n';
    expect(lines(given)).toEqual(expect.arrayContaining(['machine_count = 2', 'batch_runtime = 600']));
    expect(translate(given).warnings.map(({ message }) => message)).toContain(
      '-alloc_flags smt4 nvme has no effect in the pool: it is for a site that runs LSF.',
    );
    expect(lines(given, site('lsf'))).toContain("batch_extra_submit_args = -nnodes 2 -alloc_flags 'smt4 nvme'");
  });

  it.each([
    ['#!/bin/sh\n#$ -S /bin/bash\n', ["2: -S /bin/bash has no effect: the script's first line names what runs it."]],
    ['#!/bin/bash -l\n#$ -S /bin/bash\n', []],
    ['#$ -S /bin/bash\n', []],
    ['#PBS -S /bin/bash@head,/bin/sh\n', []],
  ])('has a shell that its first line or its option names: %j', (text, warnings) =>
    expect(translate(text).warnings.map(({ line, message }) => `${line}: ${message}`)).toEqual(warnings),
  );

  it('that names nodes of PBS is told once that the pool has other ones', () =>
    expect(translate('#!/bin/sh\n#PBS -l nodes=a+b\n').warnings).toEqual([
      { line: 2, message: '-l nodes=a+b has no effect in the pool: it is for a site that runs PBS.' },
    ]));

  it('is overridden by the words of the submit command, whose long options may be shortened', () => {
    const made = lines('#!/bin/sh\n#SBATCH -J a --mem=1G\n', POOL, ['--job-n', 'b', '-n4', '-c', '2']);
    expect(made).toEqual(expect.arrayContaining(['batch_name = b', 'request_memory = 1024', 'request_cpus = 8']));
    expect(() => translate('#!/bin/sh\n#SBATCH -J a', POOL, ['--gpus-', '1'])).toThrow('--gpus- may mean');
  });

  it('for PBS starts at home, and writes where it was submitted', () => {
    const made = lines(
      '#!/bin/sh\n#PBS -N p -l nodes=1:ppn=4,walltime=10:00 -l pmem=500mb -j oe\n#PBS -J 0-3 -v A=1,"B=x y"\n',
    );
    expect(made).toEqual(
      expect.arrayContaining([
        'initialdir = /home/u',
        'request_cpus = 4',
        'request_memory = 2000',
        'batch_runtime = 600',
        'output = /work/p.o$(Cluster).$(array_index)',
        'error = /work/p.o$(Cluster).$(array_index)',
        'queue 4',
      ]),
    );
    expect(made.find((line) => line.startsWith('environment'))).toContain("A=1 B=x' 'y");
    expect(lines('#!/bin/sh\n#PBS -N p\n', site('slurm'))).toContain('initialdir = /work');
  });

  it('for Grid Engine or LSF', () => {
    const sge = lines(
      '#!/bin/sh\n#$ -N g -cwd -pe smp 2-4 -l h_vmem=1G,h_rt=1:0:0 -t 3-9:3 -tc 2\n#$ -o log/$JOB_NAME.$TASK_ID -j y\n',
    );
    expect(sge).toEqual(
      expect.arrayContaining([
        'initialdir = /work',
        'request_cpus = 2',
        'request_memory = 2048',
        'batch_runtime = 3600',
        'max_materialize = 2',
        'output = log/g.$(array_index)',
        'queue 3',
      ]),
    );
    const lsf = lines(
      '#!/bin/sh\n#BSUB -J "l[1-4]%2" -W 1:30 -n 2 -R "rusage[mem=300]" -oo out.%J.%I -w "done(7) && ended(8)"\n',
    );
    expect(lsf).toEqual(
      expect.arrayContaining([
        'batch_name = l',
        'batch_runtime = 5400',
        'request_memory = 300',
        'output = out.$(Cluster).$(array_index)',
        '+GryphusDependency = "afterok:7,afterany:8"',
        'hold = true',
      ]),
    );
  });
});

describe('the values', () => {
  it('of times are those of the manuals', () => {
    expect(['5', '5:30', '1:00:00', '2-0', '1-12:30', '1-1:1:1', 'UNLIMITED'].map(slurmSeconds)).toEqual([
      300,
      360,
      3600,
      172_800,
      131_400,
      90_120,
      undefined,
    ]);
    expect(['90', '1:30', ':10:', '1:00:00:00'].map(clockSeconds)).toEqual([90, 90, 600, 86_400]);
  });

  it('of arrays are read and printed back', () => {
    const range = fc
      .tuple(fc.nat(1000), fc.nat(500), fc.integer({ min: 1, max: 50 }))
      .map(([from, more, step]) => ({ from, to: from + more, step }));
    fc.assert(
      fc.property(range, fc.option(fc.integer({ min: 1, max: 99 }), { nil: undefined }), (one, limit) => {
        const array = { ranges: [one], ...(limit === undefined ? {} : { limit }) };
        const again = indices(printIndices(array));
        expect(allIndices(again)).toEqual(allIndices(array));
        expect(again.limit).toBe(limit);
      }),
    );
  });

  it('of lists are split as they were joined', () => {
    const item = fc.string({ minLength: 1 }).filter((text) => !/["'\\,]/.test(text));
    fc.assert(
      fc.property(fc.array(item, { minLength: 1 }), (items) => {
        expect(commaList(items.map((one) => `"${one}"`).join(','))).toEqual(items);
      }),
    );
  });

  it('of dependencies are read and printed back', () => {
    const target = fc.tuple(fc.integer({ min: 1, max: 9_999_999 }), fc.option(fc.nat(9999), { nil: undefined }));
    const term = fc.tuple(
      fc.constantFrom('after', 'afterany', 'afterok', 'afternotok', 'aftercorr'),
      fc.array(target, { minLength: 1, maxLength: 4 }),
    );
    fc.assert(
      fc.property(fc.array(term, { minLength: 1, maxLength: 4 }), (terms) => {
        const text = terms
          .map(([kind, ids]) =>
            [kind, ...ids.map(([id, task]) => (task === undefined ? `${id}` : `${id}_${task}`))].join(':'),
          )
          .join(',');
        expect(printDependency(parseDependency(text))).toBe(text);
      }),
    );
    expect(parseDependency('12')).toEqual({ any: false, terms: [{ kind: 'afterany', targets: [{ cluster: 12 }] }] });
    expect(parseDependency('afterok:120000007?afterany:3[2].host')).toEqual({
      any: true,
      terms: [
        { kind: 'afterok', targets: [{ cluster: 12, task: 7 }] },
        { kind: 'afterany', targets: [{ cluster: 3, task: 2 }] },
      ],
    });
  });
});

it('any text is read, or refused with a message', () => {
  const word = fc.oneof(
    fc.constantFrom(...SYSTEMS.flatMap((system) => DIALECTS[system].options.flatMap(({ names }) => names.split(' ')))),
    fc.constantFrom('--mem=4G', '1-3', 'nodes=2:ppn=3', '"', "'", '\\', '#', '%A', '$X', '=', 'depend=afterok:1'),
    fc.string({ maxLength: 8 }),
  );
  const prefix = fc.constantFrom('#SBATCH ', '#PBS ', '#$ ', '#BSUB ', '# ', '');
  const line = fc.tuple(prefix, fc.array(word, { maxLength: 5 })).map(([start, words]) => start + words.join(' '));
  fc.assert(
    fc.property(
      fc.array(line, { maxLength: 6 }),
      fc.constantFrom(POOL, site('slurm'), site('sge', true)),
      (given, to) => {
        try {
          translate(`#!/bin/sh\n${given.join('\n')}\n`, to);
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(GryphusError);
        }
      },
    ),
    { numRuns: 2000 },
  );
});

it('no system has an option twice', () => {
  for (const system of SYSTEMS) {
    const names = DIALECTS[system].options.flatMap((option) => option.names.split(' '));
    expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
  }
});

it('docs/batch-scripts.md is the table', () => {
  expect(readFileSync(join(import.meta.dirname, '../../docs/batch-scripts.md'), 'utf8')).toBe(batchScriptsPage());
});
