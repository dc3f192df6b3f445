import { describe, expect, it } from 'vitest';
import { column, jobs, refusal, submit, world } from './support.ts';

function warningsOf(lines: string): { readonly line?: number; readonly message: string }[] {
  return [...submit(`executable = job.sh\n${lines}\nqueue`).warnings];
}

describe('an unknown command', () => {
  it('is a warning that names the line and what may have been meant', () => {
    expect(warningsOf('requirments = true\nfoo = 1\nouptut = o')).toEqual([
      {
        line: 2,
        message:
          "the line 'requirments = true' was unused by gryphus submit. Is it a typo? Did you mean 'requirements'?",
      },
      { line: 3, message: "the line 'foo = 1' was unused by gryphus submit. Is it a typo?" },
      { line: 4, message: "the line 'ouptut = o' was unused by gryphus submit. Is it a typo? Did you mean 'output'?" },
    ]);
  });

  it('is none where a macro uses it, or it has a dot', () => {
    expect(
      warningsOf(
        'a = 1\nb = $(a)\narguments = $(b)\nBar.baz = 2\n+Own = 1\nuse strict : true\nallow_environment_v1 = true\ninteractive_args = x',
      ),
    ).toEqual([]);
  });

  it('is said of a loop variable, too', () => {
    const { warnings } = submit('executable = job.sh\nqueue x in (a)');
    expect(warnings.map(({ message }) => message)).toEqual([
      "the Queue variable 'x' was unused by gryphus submit. Is it a typo?",
    ]);
  });

  it('is not what a command is that means nothing for such a job', () => {
    expect(warningsOf('batch_queue = q').map(({ message }) => message)).toEqual([
      "the line 'batch_queue = q' was unused by gryphus submit. It has no effect for such a job. → universe = grid",
    ]);
  });

  it('that is nearly one is distinguished', () => {
    expect(warningsOf('request_cpu = 2').map(({ message }) => message)).toContain(
      'request_cpu is not a valid submit keyword, did you mean request_cpus?',
    );
  });
});

describe('an amount that is none', () => {
  it.each([
    [
      'request_memory = lots',
      'request_memory = lots: the job has no such attribute, so no machine would match',
      '1.5G',
    ],
    ['request_memory = -5', 'request_memory = -4 is not an amount', '1.5G'],
    ['request_cpus = -2', 'request_cpus = -2 is not an amount', '= 4'],
    ['request_cpus = "2"', 'request_cpus = "2" is not an amount', '= 4'],
    ['request_gpus = 0 - 1', 'request_gpus = 0 - 1 is not an amount', '= 1'],
    ['request_disk = big', 'request_disk = big: the job has no such attribute', 'TARGET.big'],
  ])(
    'is refused for the pool with its line and the remedy, and is a warning of a dry run: %s',
    (line, message, remedy) => {
      const error = refusal(`${line}\nqueue`);
      expect(error.message).toMatch(/^on Line 2 of job\.sub: /);
      expect(error.message).toContain(message);
      expect(error.suggestions.join(' ')).toContain(remedy);
      const { warnings } = submit(`executable = job.sh\n${line}\nqueue`, { policy: { dryRun: true } });
      expect(warnings).toEqual([{ line: 2, message: expect.stringContaining('A real submit is refused.') }]);
    },
  );

  it.each([
    'request_memory = MY.Late * 2',
    'request_memory = TARGET.Memory / 2',
    'request_memory = ImageSize / 1024',
    '+Big = 2048\nrequest_memory = Big',
    'request_memory = undefined',
    'request_cpus = 0\nrequest_memory = 0\nrequest_disk = 0',
  ])('is not what an expression or zero is, as in HTCondor: %s', (lines) => {
    expect(submit(`executable = job.sh\n${lines}\nqueue`).warnings).toEqual([]);
  });
});

describe('transfer_output_remaps', () => {
  it.each([
    ['"a"', 'a'],
    ['"a = b ; c"', 'c'],
    ['"a ="', 'a ='],
    ['a\\=b', 'a\\=b'],
  ])('without a new name is refused with its line: %s', (value, entry) => {
    const error = refusal(`transfer_output_remaps = ${value}\nqueue`);
    expect(error.message).toBe(
      `on Line 2 of job.sub: transfer_output_remaps has '${entry}', which is not NAME = NEWNAME`,
    );
    expect(error.suggestions.join()).toContain('"out.txt = results/out.txt');
  });

  it('may end in a semicolon', () =>
    expect(column('TransferOutputRemaps', 'transfer_output_remaps = "a=b ; c=d;"\nqueue')).toEqual(['"a=b ; c=d;"']));
});

describe("somebody else's job", () => {
  it.each(['+Owner = "bob"', 'MY.owner = "bob"', '+Owner = 5'])('is not submitted: %s', (line) => {
    expect(refusal(`${line}\nqueue`).message).toMatch(
      /^on Line 2 of job\.sub: Setting owner to ("bob"|5) when active owner is "me" is not permitted$/,
    );
  });

  it.each(['"me"', 'undefined'])('is not what +Owner = %s makes', (value) =>
    expect(column('Owner', `+Owner = ${value}\nqueue`)).toEqual(['"me"']),
  );
});

describe('an attribute', () => {
  it("of one's own is not which cluster the job is in", () =>
    expect(column('ClusterId', '+ClusterId = 7\nqueue')).toEqual(['1']));

  it.each([
    ['JobUniverse', 'universe = mpi\nmachine_count = 2', '8'],
    ['Out', 'universe = mpi\nmachine_count = 2\noutput = o.$(Node)', '"o.#MpInOdE#"'],
    ['PublicInputFiles', 'skip_filechecks = true\npublic_input_files = a, ,b/', '"a,b/"'],
    ['PublicInputFiles', 'public_input_files = a\nshould_transfer_files = no', undefined],
  ])('%s of %j', (attribute, lines, value) => expect(column(attribute, `${lines}\nqueue`)).toEqual([value]));

  it("of one's own that is true asks for no more than 1", () => {
    const [requirements] = column('Requirements', '+RequestMemory = true\n+RequestCpus = true\nqueue');
    expect(requirements).not.toMatch(/RequestMemory|RequestCpus/);
  });
});

describe('a wrong value', () => {
  it.each([
    ['hold = yes', 'hold=yes is invalid, must eval to a boolean.'],
    ['+ = 7', 'Unable to insert expression: = 7'],
    ['priority = high', 'priority=high is invalid, must eval to an integer.'],
    ['universe = vanila', "I don't know about the 'vanila' universe."],
    ['universe = standard', "'Standard' is not a supported universe."],
    ['notification = sometimes', "Notification must be 'Never'"],
    ['kill_sig = TERM', 'invalid signal TERM'],
    ['request_foo =', 'request_foo has no value'],
    ['requirements = Requirements', 'Is Circular'],
    ['universe = grid\ngrid_resource = slurm', "Invalid value 'slurm' for grid type"],
    ['initialdir = none', 'No such directory: /d/none'],
    ['executable = none.sh', "Can't access executable file none.sh: No such file or directory"],
    ['executable = empty', 'Executable file empty has zero length'],
    ['executable = dos.sh', 'is a script with CRLF'],
    ['input = none', 'Can\'t open "/d/none" for reading: No such file or directory'],
    ['transfer_input_files = job.sh, none', 'Can\'t open "/d/none" for reading'],
    ['x509userproxy = none', 'unable to read proxy file /d/none'],
    ['MyProxyPassword = secret', 'a submit file must not contain a password'],
    ['when_to_transfer_output = maybe', 'invalid value (maybe) for WhenToTransferOutput'],
    ['should_transfer_files = maybe', 'invalid value (maybe) for ShouldTransferFiles'],
    ['should_transfer_files = no\nwhen_to_transfer_output = on_exit', 'yet ShouldTransferFiles defined as NO'],
    ['+bad-name = 1', "'bad-name' cannot be the name of an attribute"],
    ['skip_filechecks = perhaps', "must be 'warn' or a boolean"],
  ])('%s is refused on its line', (lines, text) => {
    const here = world({ empty: '', 'dos.sh': '#!/bin/sh\r\nexit\r\n' });
    const error = refusal(`\n${lines}\nqueue`, { world: here });
    expect(error.message).toContain(text);
    expect(error.message).toMatch(/^on Line [34] of job\.sub: /);
    expect(error.code).toBe('bad-input');
  });

  it('in an expression shows the place', () => {
    const error = refusal('periodic_hold = (a +\nqueue');
    expect(error.message).toBe('on Line 2 of job.sub: Parse error in expression: PeriodicHold = (a +');
    expect(error.suggestions[0]).toMatch(/column 5/);
  });

  it('never shows a password', () => {
    expect(JSON.stringify(refusal('MyProxyPassword = hunter2\nqueue'))).not.toContain('hunter2');
    expect(refusal('MyProxyPassword = hunter2\nqueue').message).not.toContain('hunter2');
  });

  it('of a file can be let pass', () => {
    expect(column('In', 'input = none\nskip_filechecks = true\nqueue')).toEqual(['"none"']);
    const { warnings } = submit('executable = none.sh\ninput = none\nskip_filechecks = warn\nqueue');
    expect(warnings).toEqual([
      { line: 1, message: "Can't access executable file none.sh: No such file or directory" },
      { line: 2, message: 'Can\'t open "/d/none" for reading: No such file or directory' },
    ]);
    const dos = world({ 'dos.sh': '#!/bin/sh\r\n' });
    const policy = { allowCrlfScript: true };
    expect(submit('executable = dos.sh\nqueue', { world: dos, policy }).warnings[0]?.message).toContain('CRLF');
  });
});

describe('a grid job', () => {
  const grid = (lines: string, more = {}) => jobs(`universe = grid\n${lines}\nqueue`, more)[0];

  it('says its site and what is passed to the batch system', () => {
    const ad = grid('grid_resource = batch slurm cluster1\nbatch_queue = short\nbatch_runtime = 60\nwant_flood = true');
    expect(ad).toMatchObject({
      JobUniverse: '9',
      GridResource: '"batch slurm cluster1"',
      BatchQueue: '"short"',
      BatchRuntime: '60',
      WantFlood: 'true',
      Requirements: 'true',
    });
    expect(ad).not.toHaveProperty('RequestCpus');
  });

  it.each([
    ['90', '90'],
    ['60 * 60', '60 * 60'],
    ['45m', '2700'],
    ['1h30m', '5400'],
    ['2 days', '172800'],
    ['1.5 h', '5400'],
  ])('has a time limit in seconds or in units: %s', (written, seconds) => {
    expect(grid(`grid_resource = batch slurm\nbatch_runtime = ${written}`)?.['BatchRuntime']).toBe(seconds);
  });

  it.each([
    ['batch_runtime = 2 fortnights', 'BatchRuntime = 2 fortnights', '2h'],
    ['batch_runtime = 01:30:00', 'BatchRuntime = 01:30:00', '2h'],
    ['batch_runtime = -5', 'batch_runtime = -5 is not an amount', '2h'],
    ['request_cpus = -1', 'request_cpus = -1 is not an amount', '= 4'],
    ['request_cpus = "2"', 'request_cpus = "2" is not an amount', '= 4'],
    ['+RequestMemory = 0 - 5', 'request_memory = 0 - 5 is not an amount', '1.5G'],
    ['request_memory = 1 gigabyte', 'RequestMemory = 1 gigabyte', '1.5G'],
    ['request_disk = much space', 'RequestDisk = much space', 'KB'],
    ['request_gpus = a100:2', 'RequestGPUs = a100:2', 'require_gpus'],
    ['batch_queue = "long"', 'the quotes would be part of the name', 'Write batch_queue = long'],
    [`batch_project = 'physics'`, 'the quotes would be part of the name', 'Write batch_project = physics'],
    ['batch_extra_submit_args = --comment="a b', 'a quote is not closed', 'as in a shell'],
  ])('is refused with its line and what to write instead: %s', (line, message, remedy) => {
    const error = refusal(`universe = grid\ngrid_resource = batch slurm\n${line}\nqueue`);
    expect(error.message).toMatch(/^on Line 4 of job\.sub: /);
    expect(error.message).toContain(message);
    expect(error.suggestions.join(' ')).toContain(remedy);
  });

  it('that asks for what no attribute expresses gets a message', () => {
    const { warnings } = submit(
      'executable = job.sh\nuniverse = grid\ngrid_resource = batch slurm\nrequest_memory = much\nrequest_cpus = ImageSize\nqueue',
    );
    expect(warnings).toEqual([
      { line: 4, message: 'request_memory = much: the job has no such attribute, so nothing is requested.' },
    ]);
  });

  it('may have more kinds of sites, or none where a broker chooses, when the installation says so', () => {
    expect(
      grid('grid_resource = cream host/jobmanager', { policy: { gridTypes: ['cream'] } })?.['GridResource'],
    ).toContain('cream');
    expect(grid('', { policy: { broker: true } })).not.toHaveProperty('GridResource');
  });

  it('has a proxy that is looked into', () => {
    const here = { world: world({ 'p.pem': 'proxy' }, { X509_USER_PROXY: '/d/p.pem' }) };
    const lines = 'grid_resource = batch slurm\nuse_x509userproxy = true\nMyProxyHost = my.host:7512';
    expect(grid(lines, here)).toMatchObject({ x509userproxy: '"/d/p.pem"', MyProxyHost: '"my.host:7512"' });
    const ends = (expiresAt: number) => ({
      ...here,
      policy: { checkProxy: () => ({ ok: true, value: { expiresAt } }) as const },
    });
    expect(grid(lines, ends(1_800_010_000))).toHaveProperty('x509userproxy');
    const message = (end: number): string => refusal(`universe = grid\n${lines}\nqueue`, ends(end)).message;
    expect(message(1_799_999_999)).toContain('has expired');
    expect(message(1_800_000_060)).toContain('lifetime too short');
  });
});

describe('attributes of the user', () => {
  it('go over those of commands, whatever their value', () => {
    expect(column('Args', 'arguments = a\n+Args = strcat("b", "c")\nqueue')).toEqual(['strcat("b","c")']);
    expect(column('Foo', '+Foo =\nqueue')).toEqual(['undefined']);
    expect(column('__proto__', '+__proto__ = 1\nqueue')).toEqual(['1']);
    expect(column('Note', '+Note = "a \\ b \\" c"\nqueue')).toEqual(['"a \\ b \\" c"']);
  });
});

describe('what is not there', () => {
  it('is reported at once for all jobs, with the lines and the remedy', () => {
    const text = `executable = job.sh
output = out/$(Process).txt
error = err/it's/e
log = job.log
transfer_input_files = job.sh, $(Process).dat, URL://x/y
transfer_output_remaps = "a = res/a; b = b2; c = http://h/c; d = /d/"
queue 2`;
    const parsed = (): unknown => submit(text);
    const message = `on Line 2 of job.sub: output = out/0.txt and 1 more: there is no directory /d/out
on Line 3 of job.sub: error = err/it's/e: there is no directory /d/err/it's
on Line 5 of job.sub: Can't open "/d/0.dat" for reading: No such file or directory
on Line 5 of job.sub: Can't open "/d/1.dat" for reading: No such file or directory
on Line 6 of job.sub: transfer_output_remaps = res/a: there is no directory /d/res`;
    const suggestions = [
      `mkdir -p /d/out '/d/err/it'\\''s' /d/res`,
      'Names are relative to initialdir. skip_filechecks = true submits without this check.',
    ];
    expect(parsed).toThrow(expect.objectContaining({ code: 'bad-input', message, suggestions }));
  });

  it('in later jobs alone is found as they are made, and then in all of them', () => {
    const cluster = submit(
      'executable = job.sh\noutput = $(d)o\ntransfer_input_files = $(f)\nqueue d,f from (\n- job.sh\na/ job.sh\nb/ c\n)',
    );
    const read = (): unknown => [...cluster.procs()];
    expect(read).toThrow(/^on Line 2 .*\/d\/a\n.*\/d\/b\non Line 3 .*"\/d\/c"[^\n]*$/);
  });

  it('is warned of, or passed over, as skip_filechecks says, and in a dry run', () => {
    const job = 'output = out/x\nlog = log/x\nqueue';
    expect(submit(`executable = job.sh\nskip_filechecks = warn\n${job}`).warnings).toEqual([
      { line: 3, message: 'output = out/x: there is no directory /d/out' },
      { line: 4, message: 'log = /d/log/x: there is no directory /d/log' },
    ]);
    expect(submit(`executable = job.sh\nskip_filechecks = true\n${job}`).warnings).toEqual([]);
    expect(submit(`executable = job.sh\n${job}`, { policy: { checkInputs: false } }).warnings).toEqual([]);
    expect(submit(`executable = job.sh\n${job}`, { policy: { dryRun: true } }).warnings).toEqual([
      { line: 2, message: 'output = out/x: there is no directory /d/out: a real submit is refused' },
      { line: 3, message: 'log = /d/log/x: there is no directory /d/log: a real submit is refused' },
    ]);
  });

  it('is shown in part where it is very much, of every line, and the remedy is whole', () => {
    const parsed = (): unknown =>
      submit(
        'executable = job.sh\noutput = my out$(Process)/o\nerror = err/$(Process)\nlog = $(Process).d/l$(Process)\nqueue 600\n',
      );
    const message = `on Line 2 of job.sub: output = my out0/o: there is no directory /d/my out0
on Line 2 of job.sub: output = my out1/o: there is no directory /d/my out1
on Line 2 of job.sub: output = my out2/o: there is no directory /d/my out2
… and 597 more of that line
on Line 3 of job.sub: error = err/0 and 599 more: there is no directory /d/err
on Line 4 of job.sub: log = /d/0.d/l0: there is no directory /d/0.d
on Line 4 of job.sub: log = /d/1.d/l1: there is no directory /d/1.d
on Line 4 of job.sub: log = /d/2.d/l2: there is no directory /d/2.d
… and 597 more of that line`;
    const suggestions = ["mkdir -p '/d/my out'{0..599} /d/{0..599}.d /d/err"];
    expect(parsed).toThrow(expect.objectContaining({ message, suggestions }));
  });
});

describe('the machines of a job', () => {
  const refused = { policy: { broker: true, gridTypes: ['gt2'] } };
  it.each([
    ['HostNumber', 'universe = grid\nmachine_count = 3', '3'],
    ['HostNumber', 'universe = grid\nnode_count = 3', '3'],
    ['MaxHosts', 'universe = parallel\nmachine_count = 3', '3'],
    ['GridResource', 'universe = parallel\nmachine_count = 3', '"batch slurm c"'],
    ['BatchQueue', 'universe = parallel\nmachine_count = 3\nbatch_queue = long', '"long"'],
    ['RanksPerNode', 'universe = parallel\nmachine_count = 3\nranks_per_node = 2', '2'],
    ['WholeNodes', 'universe = grid\nwhole_nodes = true', 'true'],
    ['Out', 'universe = parallel\nmachine_count = 3\noutput = o.$(Node)', '"o.0"'],
  ])('%s of %j', (attribute, lines, value) => {
    expect(column(attribute, `${lines}\ngrid_resource = batch slurm c\nqueue`)).toEqual([value]);
  });

  it.each(['0', '-2', 'x', '2.5', '1000000'])('cannot be %s in number', (count) => {
    for (const command of ['machine_count', 'ranks_per_node']) {
      const lines = `universe = parallel\nmachine_count = 2\n${command} = ${count}\nqueue`;
      expect(refusal(lines, refused).message).toMatch(`Line 4 of job.sub: ${command} = ${count} is `);
    }
    expect(jobs(`universe = parallel\nmachine_count = ${count}\nqueue`, { policy: { dryRun: true } })).toHaveLength(1);
  });
});
