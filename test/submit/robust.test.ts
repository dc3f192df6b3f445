import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GryphusError } from '../../src/errors.ts';
import { fullAds } from '../../src/submit/api.ts';
import { submit } from './support.ts';

const piece = fc.constantFrom(
  'executable = job.sh', 'arguments = ', 'queue', 'queue 3', 'queue x in (', 'queue x,y from (', ')', 'if ', 'elif true', 'else',
  'endif', 'include : ', 'error : ', '$(x)', '$(x:', '$INT(', '$Fpnxq(', '$CHOICE(1,', '$SUBSTR(x,', '$(DOLLAR)', '$$(', '@=e', '@e',
  '\\', '\n', '\n', '\n', '#', ' ', ',', '=', '+=', ':', '"', "'", '(', '[1:2]', '[::', 'x = ', '+Foo = ', 'MY.Bar = ',
  'request_memory = ', 'request_foo = ', 'requirements = ', 'universe = grid', 'grid_resource = batch slurm', 'environment = ',
  'transfer_input_files = ', 'max_retries = ', 'hold = ', 'true', '1G', '{1,2', 'x == 1', '&&', '\t', 'é', '\x1f', '%d', '[',
); // biome-ignore format: a table

/** Reads a whole text, with a limit on its jobs. Only a GryphusError may be thrown. */
function outcome(text: string): 'taken' | 'refused' {
  try {
    const ads = fullAds(submit(text), { count: 20 });
    for (const ad of ads) expect(Object.values(ad).every((value) => typeof value === 'string')).toBe(true);
    return 'taken';
  } catch (thrown) {
    if (thrown instanceof GryphusError) return 'refused';
    throw thrown;
  }
}

describe('any text', () => {
  it('is taken or refused with one clear error', () => {
    const seen = { taken: 0, refused: 0 };
    const text = fc
      .array(piece, { maxLength: 40 })
      .map((pieces) => `executable = job.sh\n${pieces.join('')}\nqueue 2\n`);
    fc.assert(
      fc.property(fc.oneof(text, fc.string(), fc.string({ unit: 'binary' })), (input) => {
        seen[outcome(input)]++;
      }),
      { numRuns: 2000 },
    );
    expect(seen.taken).toBeGreaterThan(50);
    expect(seen.refused).toBeGreaterThan(50);
  });

  it('of any macros ends', () => {
    const name = fc.constantFrom('a', 'b', 'c', 'd');
    const value = fc.array(
      fc.oneof(fc.constantFrom('$(a)', '$(b)', '$(c:$(d))', '$INT(a)', '$Fn(b)', '$EVAL(c)', 'x', '1', ' '), name),
    );
    const lines = fc.array(fc.tuple(name, value), { maxLength: 12 });
    fc.assert(
      fc.property(lines, (pairs) => {
        const text = pairs.map(([left, parts]) => `${left} = ${parts.join('')}`).join('\n');
        outcome(`executable = job.sh\n${text}\narguments = $(a) $(b)\nqueue`);
      }),
      { numRuns: 500 },
    );
  });

  it('makes no more jobs than there may be, says so with the line, and looks at none', () => {
    const policy = { mostJobs: 10 };
    const big = 'executable = job.sh\nqueue 4\nqueue 2000000000';
    const parse = (text: string) => () => submit(text, { policy });
    expect(parse(big)).toThrow(/^on Line 3 of job.sub: 2000000004 jobs are more than one submit may queue, 10$/);
    expect(parse('executable = job.sh\nmax_materialize = 3\nqueue 2000000000')().total).toBe(2_000_000_000);
  });

  it('refuses bytes that are not UTF-8, in what a job may get', () => {
    const latin1 = (text: string) => Buffer.from(text, 'latin1').toString('utf8');
    const read = (text: string) => () => submit(latin1(text));
    const line = (n: number) => new RegExp(`^on Line ${n} of job.sub: the line contains bytes that are not UTF-8$`);
    expect(read('executable = job.sh\narguments = café\nqueue')).toThrow(line(2));
    expect(read('executable = job.sh\narguments = a \\\n  café\nqueue')).toThrow(line(2));
    expect(read('executable = job.sh\narguments = $(x)\nqueue x from (\na\ncafé\n)')).toThrow(line(5));
    expect(() => submit('executable = job.sh\nqueue', { appends: [latin1('arguments = café')] })).toThrow(/not UTF-8/);
    expect(submit(latin1('# Größe\nexecutable = job.sh\nqueue')).total).toBe(1);
    expect(submit('executable = job.sh\narguments = café\nqueue').total).toBe(1);
  });

  it('refuses a line that is a file, joined or not', () => {
    const long = 'x'.repeat(2 ** 24);
    expect(() => submit(`executable = job.sh\narguments = ${long}\nqueue`)).toThrow(
      /^on Line 2 of job.sub: the line has/,
    );
    const parts = `${'y'.repeat(99)}\\\n`.repeat(200_000);
    expect(() => submit(`executable = job.sh\n# one\narguments = ${parts}\nqueue`)).toThrow(
      /^on Line 3 of job.sub: the line/,
    );
  });

  it('joins many lines in a time that grows with them', () => {
    const before = process.cpuUsage();
    const text = `executable = job.sh\ndescription = ${'abcdefg\\\n'.repeat(400_000)}\nqueue`;
    expect([...submit(text).procs()]).toHaveLength(1);
    const { user } = process.cpuUsage(before);
    // 0.3 s where it was measured; joined one by one it would take minutes.
    expect(user / 1e6).toBeLessThan(5);
  });
});
