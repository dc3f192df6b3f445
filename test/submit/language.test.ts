import { describe, expect, it } from 'vitest';
import { column, expansion, jobs, refusal, submit, world } from './support.ts';

describe('lines', () => {
  it('join after a backslash, whatever blanks follow it, without their indentation', () => {
    expect(column('Args', 'arguments = a \\ \t\n   b\\\n c\nqueue')).toEqual(['"a bc"']);
  });

  it('may end as DOS and old editors end them', () => {
    expect(column('Args', 'arguments = a\r\nqueue 2\r')).toEqual(['"a"', '"a"']);
    expect(submit('executable = job.sh\nqueue').total).toBe(1);
  });

  it('may follow the mark that editors of Windows put before UTF-8', () => {
    expect(submit('\uFEFFexecutable = job.sh\nqueue 2').total).toBe(2);
  });

  it('keep a comment that ends in a backslash to themselves', () => {
    expect(column('Args', '# no \\\narguments = yes\nqueue')).toEqual(['"yes"']);
  });

  it('refuse a comment inside a statement, with its line', () => {
    const error = refusal('arguments = a \\\n# why\n b\nqueue');
    expect(error.message).toBe('on Line 3 of job.sub: there is a comment between continued lines');
    expect(error.suggestions[0]).toContain('backslash');
  });

  it('refuse what is no text', () => {
    expect(refusal('arguments = \0\nqueue').message).toContain('not a text file');
  });
});

describe('assignments', () => {
  it('expand macros on the left side, and join with +=', () => {
    expect(expansion('$(v3)', 'n = v3\n$(n) = yes')).toBe('yes');
    expect(expansion('$(x)', 'x = a\nx += b\nx +,= c')).toBe('a b,c');
    expect(expansion('$(x)', 'x = a\nx +&&= b\nx +;= c')).toBe('a && b;c');
  });

  it('take blocks as they stand, but for comments and blank lines', () => {
    expect(expansion('$(x)', 'x @=end\n  one\n# no\n\nqueue 7\n  @end')).toBe('one\nqueue 7');
  });

  it('keep the last of each name, in any case', () => {
    expect(expansion('$(X)', 'x = 1\nX = 2')).toBe('2');
    expect(expansion('$(x)', 'x = 1\nx = $(x)2\nx = $(x)3')).toBe('123');
  });

  it('come from the command line: before the file, or after it', () => {
    expect(column('Args', 'arguments = file\nqueue', { assignments: ['arguments=before'] })).toEqual(['"file"']);
    expect(column('Args', 'arguments = file\nqueue', { appends: ['arguments = after'] })).toEqual(['"after"']);
    expect(column('JobBatchName', 'batch_name = file\nqueue', { batchName: 'my "own"' })).toEqual(['"my \\"own\\""']);
    // A DAG's VARS JOB="$(JOB)" is given so, after DAGMan's own JOB.
    expect(column('Args', 'arguments = $(x)\nqueue', { assignments: ['x=1', 'X=$(x)2'] })).toEqual(['"12"']);
    expect(() => submit('queue', { assignments: ['no equals'] })).toThrow(/invalid attribute name/);
  });

  it('refuse names that are none', () => {
    for (const line of ['my-key = 1', 'a!b = 1', '+Desc @=x', '= 1'])
      expect(refusal(`${line}\nqueue`).code).toBe('bad-input');
    for (const line of ['word', 'two words', 'a : b', 'a := b', '+ Foo = 1']) {
      expect(refusal(`${line}\nqueue`).message).toContain('on Line 2 of job.sub: invalid queue statement');
    }
  });
});

describe('conditions', () => {
  const taken = (condition: string, before = ''): boolean => {
    return (
      column('Args', `${before}\nif ${condition}\narguments = yes\nelse\narguments = no\nendif\nqueue`)[0] === '"yes"'
    );
  };

  it.each([
    'true',
    'YES',
    't',
    '1',
    '-2',
    '0.5',
    '1e3',
    'defined one',
    'defined 7',
    '! false',
    'version > 8.0.1',
    'version == 25.14',
    'defined use feature',
    'defined use Feature:GPUs',
  ])('%s holds', (condition) => expect(taken(condition, 'one = 1')).toBe(true));

  it.each([
    'false',
    'No',
    'f',
    '0',
    '0.0',
    'defined none',
    'defined empty',
    '!yes',
    '$(none)',
    'version < 25.14',
    'defined',
    'defined use feature:none',
    'defined use template',
  ])('%s does not hold', (condition) => expect(taken(condition, 'empty =')).toBe(false));

  it.each([
    '1 == 1',
    '(true)',
    '!!true',
    'true && false',
    'true # so',
    'a',
    '',
    'version >= 30',
    'version',
    'version>=8.1',
    '"x"',
    'defined use feature : gpus',
  ])('%j is refused', (condition) =>
    expect(refusal(`if ${condition}\nendif\nqueue`).message).toContain('is not a valid if condition because'),
  );

  it('nest, and skip whatever stands in a branch that is not taken', () => {
    const text =
      'if false\n  garbage\n  if true\n  error : no\n  queue 9\n  else\n  include : none\n  endif\nelif yes\n  arguments = b\nelif what?\nendif';
    expect(column('Args', `${text}\nqueue`)).toEqual(['"b"']);
  });

  it('are forgotten at a queue statement', () => {
    expect(column('Args', 'if true\narguments = a\nqueue')).toEqual(['"a"']);
    expect(refusal('if true\nqueue\nendif').message).toContain('endif without matching if');
    expect(refusal('if true\narguments = a').message).toContain('endif(s) not found before end-of-file');
  });
});

describe('include', () => {
  it('reads files, commands, and what a command once said', () => {
    const here = world({ 'a.inc': 'include : b.inc\n', 'b.inc': 'v = deep\n' });
    expect(expansion('$(v)', 'include : a.inc', { world: here })).toBe('deep');
    expect(expansion('$(v)', `include command : "say 'v=from it'"`, { world: here })).toBe('from it');
    const kept = world();
    expect(expansion('$(v)', 'include command into kept.inc : say v=1', { world: kept })).toBe('1');
    expect(expansion('$(v)', 'include command into kept.inc : say v=2', { world: kept })).toBe('1');
    expect(expansion('$(v)', 'include ifexist : none.inc\nv = on')).toBe('on');
  });

  it('tells the place in the file and the place that includes it', () => {
    const here = world({ 'a.inc': 'x = 1\nbad line\n', 'loop.inc': 'include : loop.inc\n', 'q.inc': 'queue\n' });
    const message = (line: string): string => refusal(`${line}\nqueue`, { world: here }).message;
    expect(message('include : a.inc')).toContain('on Line 2 of job.sub: Error "a.inc", Line 2, Include Depth 1:');
    expect(message('include : none.inc')).toContain("can't open file none.inc: No such file or directory");
    expect(message('include : loop.inc')).toContain('includes nested too deep');
    expect(message('include : q.inc')).toContain('Queue statement not allowed in include file');
    expect(message('include often : a.inc')).toContain("unexpected keyword(s) 'often'");
    expect(message('use feature : x')).toContain('at use feature:x');
  });

  it('has error and warning to speak with', () => {
    expect(refusal('error : no $(x:more) of this\nqueue').message).toBe('on Line 2 of job.sub: no more of this');
    const { warnings } = submit('executable = job.sh\nwarning : mind this\nqueue');
    expect(warnings).toEqual([{ line: 2, message: 'mind this' }]);
  });
});

describe('macros', () => {
  const here = { world: world({}, { HOME: '/home/me', A: '$(b)' }) };
  it.each([
    ['$(x:a b, c)', 'a b, c'],
    ['$(x:$(y:deep))', 'deep'],
    ['$($(p)q)', '2'],
    ['$ENV(HOME)', '/home/me'],
    ['$ENV(A)', '3'],
    ['$ENV(NONE) $ENV(NONE:d)', 'UNDEFINED d'],
    ['$$(x) $$([y + $(b)]) $$$(b)', '$$(x) $$([y + 3]) $$3'],
    ['$(x-y) $( b ) ${b} $b $NOSUCH(b)', '$(x-y) $( b ) ${b} $b $NOSUCH(b)'],
    ['$(DOLLAR)(b) $(dollar)$(DOLLAR)(x)', '$(b) $$(DOLLAR)(x)'],
    ['$(JobId) $(Cluster) $(ProcId)', '1.0 1 0'],
    ['$(Year)', '2027'],
    ['$(SUBMIT_FILE) $(SUBMIT_TIME)', 'job.sub 1800000000'],
    ['$INT(e) $INT(e,%05d) $INT(2*8,%x)', '7 00007 10'],
    ['$REAL(r) $REAL(r,%.3f) $REAL(r,%e)', '0.125 0.125 1.250000e-01'],
    ['$CHOICE(2,a,b,c) $CHOICE(b2,list)', 'c z'],
    ['$SUBSTR(s,1,3) $SUBSTR(s,-2) $SUBSTR(s,1,-1)', 'bcd ef bcde'],
    ['$REAL(0x1F) $REAL(-inf) $REAL(nan) $INT(1e400)', '31 -INF NAN -9223372036854775808'],
    ['$STRING(q) $EVAL(e) $EVAL(q)', 'in quotes 7 in quotes'],
    ['$EVAL($(p)) $EVAL(none:$(b))', 'p none:3'],
    ['$BASENAME(f) $BASENAME(f,.gz) $DIRNAME(f)', 'c.tar.gz c.tar /a/b/'],
    ['$Fn(f) $Fx(f) $Fdb(f) $Fnx(/lit/x.y)', 'c.tar .gz b x.y'],
  ])('%s is %s', (text, value) => {
    const lines =
      'p = p\npq = 2\nb = 3\nb2 = 2\ne = 1 + 2 * 3\nr = 1/8.0\nlist = x, y, z\ns = abcdef\nq = "in quotes"\nf = /a/b/c.tar.gz';
    expect(expansion(text, lines, here)).toBe(value);
  });

  it('continue with a warning where a function is not possible', () => {
    const { warnings } = submit('executable = job.sh\narguments = $INT(what) $CHOICE(9,a,b)\nqueue');
    expect(warnings.map(({ message }) => message)).toEqual([
      '$INT() macro: what does not evaluate to an integer!',
      '$CHOICE() config macro: index 9 is out of range!',
    ]);
  });

  it('say so of every job that a function cannot be for, once for each line', () => {
    const cluster = submit(
      'executable = job.sh\narguments = $CHOICE(Process,a,b)\ndescription = $INT(x) $REAL(x)\nqueue 3 x in (1 two 3 four)',
    );
    expect(cluster.warnings).toEqual([]);
    expect([...cluster.procs()]).toHaveLength(12);
    const said = [
      { line: 2, message: '$CHOICE() config macro: index 2 is out of range! (job 2, and 9 more like it)' },
      { line: 3, message: '$INT() macro: two does not evaluate to an integer! (job 3, and 5 more like it)' },
      { line: 3, message: '$REAL() macro: two does not evaluate to an real! (job 3, and 5 more like it)' },
    ];
    expect(cluster.warnings).toEqual(said);
    // A second reading of the jobs repeats no warnings.
    expect([...cluster.procs()]).toHaveLength(12);
    expect(cluster.warnings).toEqual(said);
  });

  it('that never end are refused, with the line that uses them', () => {
    for (const circle of [
      'a = $(b)\nb = $(a)',
      'a = $(b)$(b)\nb = $(a)x',
      'a = $INT(b)\nb = $INT(a)',
      'a = $(y:$(a))x',
    ]) {
      const error = refusal(`${circle}\narguments = $(a)\nqueue`);
      expect(error.message).toContain('is endless');
      expect(error.suggestions[0]).toContain('cycle');
    }
    const laughs = Array.from({ length: 40 }, (_, i) => `a${i} = $(a${i + 1})$(a${i + 1})`).join('\n');
    expect(refusal(`${laughs}\na40 = ha\narguments = $(a0)\nqueue`).message).toContain('is endless');
    expect(jobs('a = $(b)\nb = $(a)\nqueue')).toHaveLength(1);
  });
});
