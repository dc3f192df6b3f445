import { describe, expect, it } from 'vitest';
import { column, jobs, refusal, submit, world } from './support.ts';

/** The jobs' arguments, for `queue …` and what follows it. */
function queued(queue: string, args = '$(x)', more: Parameters<typeof column>[2] = {}): (string | undefined)[] {
  return column('Args', `arguments = [${args}]\nqueue ${queue}`, more).map((text) => text?.slice(2, -2));
}

describe('queue', () => {
  it('counts with an expression', () => {
    for (const [count, jobsMade] of [
      ['', 1],
      ['3', 3],
      ['1+1', 2],
      ['1.9', 1],
      ['true', 1],
      ['int(2.7)', 2],
      ['$(none)', 1],
    ] as const) {
      expect(submit(`executable = job.sh\nqueue ${count}`).total).toBe(jobsMade);
    }
    expect(submit('executable = job.sh').total).toBe(1);
  });

  it('refuses counts that are none, and says the remedy', () => {
    for (const count of ['-1', '0x10', '1,2', '2 # two', 'x', '= 3', 'x frm (a b)', '0', '99999999999']) {
      const error = refusal(`queue ${count}`);
      expect(error.message).toMatch(
        /^on Line 2 of job\.sub: (Invalid Queue count expression|Queue count out of range)/,
      );
      expect(error.suggestions[0]).toContain('queue 10');
    }
  });

  it('takes lists in one line and in many', () => {
    expect(queued('x in a, b c')).toEqual(['a', 'b', 'c']);
    expect(queued('x in (a, b c)')).toEqual(['a', 'b', 'c']);
    expect(queued('X IN (\n a b # c\n# no\n\n d,e\n)')).toEqual(['a', 'b', '#', 'c', 'd', 'e']);
    expect(queued('in (a b)', '$(Item)')).toEqual(['a', 'b']);
    expect(queued('2 x in (a b)', '$(x)$(Step)')).toEqual(['a0', 'a1', 'b0', 'b1']);
    // Only a leading parenthesis starts a list of several lines.
    expect(queued('in in (a b)', '$(Item)')).toEqual(['in', '(a', 'b)']);
  });

  it.each(['x from', 'x in', 'matching'])('queues nothing for an empty list: %s', (words) => {
    const made = submit(`executable = job.sh\nlist =\nqueue ${words} $(list)`);
    expect(made.total).toBe(0);
    expect(refusal(`queue ${words}`).message).toContain('Invalid Queue count expression');
  });

  it.each(['[ :2]', '[1: ]', '[1 :2]', '[a]'])('refuses the slice %s', (slice) => {
    expect(refusal(`queue x in ${slice} (a b c)`).message).toContain('Invalid [::] statement');
  });

  it('says which item a job is from, before the list too', () => {
    expect(queued('x in [-3:-1] (a)', '$(x)|$(ItemIndex)')).toEqual(['|-2']);
  });

  it('takes a queue statement from the command line, once', () => {
    expect(submit('executable = job.sh', { appends: ['queue 2'] }).total).toBe(2);
    expect(refusal('queue', { appends: ['queue 2'] }).message).toContain('-queue argument conflicts');
    expect(refusal('', { appends: ['queue 2', 'queue 3'] }).message).toContain('only one -queue command');
  });

  it('matches a name without wildcards as it is, also for dirs', () => {
    const files = world({ 'a.dat': '', 'd/x': '' });
    expect(queued('x matching dirs (a.dat d *.dat)', '$(x)', { world: files })).toEqual(['a.dat', 'd/']);
  });

  it('takes rows with columns; an empty row is the one before it', () => {
    const rows = 'x, y from (\n a, b c\n\n # no\n d\te  f\n g\n)';
    expect(queued(rows, '$(x)|$(y)')).toEqual(['a|b c', 'a|b c', 'd|e  f'.replace('  ', ' '), 'g|']);
    expect(queued('x,y from rows.txt', '$(x)|$(y)', { world: world({ 'rows.txt': 'a,b\n# c\n\nd\n' }) })).toEqual([
      'a|b',
      '#|c',
      '#|c',
      'd|',
    ]);
    const options = 'x,y from table(header=none,comma_sep=false) (\n a b\n c,d\n)';
    expect(queued(options, '$(x)|$(y)')).toEqual(['a|b', 'c|d']);
    const units = world({ 'rows.txt': 'a b\x1fc,d\x1fe\n' });
    expect(queued('x,y,z from rows.txt', '$(x)|$(y)|$(z)', { world: units })).toEqual(['a b|c,d|e']);
    expect(queued('x from say one two |')).toEqual(['one', 'two']);
    expect(queued('x from -')).toEqual(['from stdin']);
    expect(queued('from table rows.csv', '$(b)', { world: world({ 'rows.csv': 'a,b\n1,two words\n3,4\n' }) })).toEqual([
      'two words',
      '4',
    ]);
  });

  it.each([
    ['[:2]', ['a', 'b']],
    ['[1:]', ['b', 'c', 'd', 'e']],
    ['[::2]', ['a', 'c', 'e']],
    ['[-2:]', ['d', 'e']],
    ['[2]', ['c', 'd', 'e']],
    ['[3:1]', []],
    ['[5:]', []],
    ['[7:9]', ['']],
    ['[-9:]', ['']],
    ['[ 1: 3]', ['b', 'c']],
  ])('%s of five items', (slice, items) => {
    expect(queued(`x in ${slice} (a b c d e)`)).toEqual(items);
  });

  it('refuses slices that go backwards or are none', () => {
    for (const slice of ['[::-1]', '[::0]', '[ 1 : 3 ]', '[1:2:3:4]', '[x]']) {
      expect(refusal(`queue x in ${slice} (a b)`).message).toContain('Invalid [::] statement');
    }
  });

  it('keeps $(ItemIndex) as the place in the whole list', () => {
    expect(queued('2 x in [1::2] (a b c d)', '$(x) $(Row) $(ItemIndex) $(Step) $(Process)')).toEqual([
      'b 1 1 0 0',
      'b 1 1 1 1',
      'd 3 3 0 2',
      'd 3 3 1 3',
    ]);
  });

  it('matches files in byte order, each once', () => {
    const here = {
      world: world({
        'b.dat': '',
        'a.dat': '',
        'B.dat': '',
        '.h.dat': '',
        'd.dat/in.txt': '',
        'sub/x1.txt': '',
        'sub/y2.txt': '',
        'a b.dat': '',
      }),
    };
    expect(queued('f matching *.dat', '$(f)', here)).toEqual(['B.dat', 'a b.dat', 'a.dat', 'b.dat', 'd.dat/']);
    expect(queued('f matching files (*.dat)', '$(f)', here)).toEqual(['B.dat', 'a b.dat', 'a.dat', 'b.dat']);
    expect(queued('f matching dirs *.dat', '$(f)', here)).toEqual(['d.dat/']);
    expect(queued('f matching (sub/[xy]?.txt sub/x*)', '$(f)', here)).toEqual(['sub/x1.txt', 'sub/y2.txt']);
    expect(queued('f matching [!ab]*.dat', '$(f)', here)).toEqual(['B.dat', 'd.dat/']);
    expect(queued('f matching .*.dat', '$(f)', here)).toEqual(['.h.dat']);
    const { warnings, total } = submit('executable = job.sh\nqueue f matching *.none');
    expect([total, ...warnings.map(({ message }) => message)]).toEqual([
      0,
      "'*.none' does not match any files",
      '"job.sub" has only empty "queue" commands -- no jobs queued',
    ]);
  });

  it('may loop over a command or an attribute', () => {
    expect(column('RequestCpus', 'queue request_cpus in (1 2 4)')).toEqual(['1', '2', '4']);
    expect(column('Foo', 'queue My.Foo in (1 "x")')).toEqual(['1', '"x"']);
    expect(column('Args', 'arguments = $(Process)\nqueue Process in (a b)')).toEqual(['"a"', '"b"']);
  });

  it('has several statements make one cluster', () => {
    const text = 'arguments = $(x)\nqueue x in (a b)\narguments = last\n+Foo = 1\nqueue 2';
    expect(jobs(text).map((ad) => [ad['ProcId'], ad['Args'], ad['Foo']])).toEqual([
      ['0', '"a"', undefined],
      ['1', '"b"', undefined],
      ['2', '"last"', '1'],
      ['3', '"last"', '1'],
    ]);
    expect(column('Args', 'arguments = $(x)\nqueue x in (a)\nqueue')).toEqual(['"a"', '"<Queue_item>"']);
  });

  it('comes from the command line where the file has none', () => {
    expect(column('Args', 'arguments = $(x)', { queueArgs: 'x in (a b)' })).toEqual(['"a"', '"b"']);
    expect(refusal('queue', { queueArgs: '2' }).message).toContain('-queue argument conflicts');
    expect(refusal('queue 4', { maxJobs: 3 }).message).toContain('-maxjobs (3)');
  });

  it('says where a list never ends, or cannot be read', () => {
    expect(refusal('queue x in (a\n b)').message).toBe(
      "on Line 2 of job.sub: Reached end of file without finding closing brace ')' for Queue command on line 2",
    );
    expect(refusal('queue x from none.txt').message).toContain("can't open file none.txt: No such file or directory");
    expect(refusal('queue x from none |').message).toContain('not a valid command');
    for (const odd of ['x in files (a)', 'x matching files dirs *', 'x matching any any *', 'x from table table t'])
      expect(refusal(`queue ${odd}`).message).toContain('Queue keyword conflict');
  });
});
