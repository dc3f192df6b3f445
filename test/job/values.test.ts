import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { evaluate, parseExpr } from '../../src/classad/api.ts';
import { Attrs } from '../../src/job/attrs.ts';
import { adOf, compileConstraint, quoted, readBoolean, readNumber, readString, truthOf } from '../../src/job/values.ts';

const cluster = new Attrs({ Cmd: '"/bin/true"', RequestMemory: '128', JobMaxRetries: '3', NumJobCompletions: '0' });
const job = new Attrs(
  { Args: '"say \\"hi\\""', RequestDisk: 'MAX({ 1024, 1.5 * 10 }) * 2', NumJobCompletions: '3', Flag: 'True' },
  cluster,
);

describe('reading attributes', () => {
  it('reads literals and expressions, here and in the cluster', () => {
    expect(readString(job, 'cmd')).toBe('/bin/true');
    expect(readString(job, 'Args')).toBe('say "hi"');
    expect(readNumber(job, 'RequestMemory')).toBe(128);
    expect(readNumber(job, 'RequestDisk')).toBe(2048);
    expect(readBoolean(job, 'Flag')).toBe(true);
    expect(readString(job, 'RequestMemory')).toBeUndefined();
    expect(readNumber(job, 'Nothing')).toBeUndefined();
  });

  it.each(['', 'a b', 'back\\slash', 'ends with \\', 'qu"ote', "ap'os", 'new\nline', '$(x)', 'snow ☃'])(
    'keeps %j as it is',
    (text) => {
      expect(readString(new Attrs({ A: quoted(text) }), 'A')).toBe(text);
    },
  );
});

describe('a policy', () => {
  const policy = new Attrs({ OnExitRemove: 'NumJobCompletions > JobMaxRetries || ExitCode =?= 0' }, job);
  it('is asked over the ad as it is about to be', () => {
    expect(truthOf(policy, 'OnExitRemove', { ExitCode: '1' })).toBe(false);
    expect(truthOf(policy, 'OnExitRemove', { ExitCode: '0' })).toBe(true);
    expect(truthOf(policy, 'OnExitRemove', { ExitCode: '1', NumJobCompletions: '4' })).toBe(true);
  });
  it('is undefined where it cannot be said', () => {
    expect(truthOf(new Attrs({ P: 'Missing > 3' }), 'P')).toBeUndefined();
    expect(truthOf(new Attrs({ P: '1/0' }), 'P')).toBeUndefined();
  });
});

describe('a constraint', () => {
  it('selects', () => {
    expect(compileConstraint('RequestMemory >= 128 && Args == "say \\"hi\\""', 'x')(job)).toBe(true);
    expect(compileConstraint('RequestMemory > 128', 'x')(job)).toBe(false);
    expect(compileConstraint('Missing', 'x')(job)).toBe(false);
  });
  it('does not see what the job hides of its cluster', () => {
    const hides = new Attrs({ requestmemory: null }, cluster);
    expect(compileConstraint('RequestMemory =?= undefined', 'x')(hides)).toBe(true);
    expect(evaluate(parseExpr('RequestMemory'), { my: adOf(hides) })).toBeUndefined();
  });
  it('may take the whole ad', () => {
    expect(compileConstraint('regexp("Args = .*RequestMemory = 128", string(MY)) && size(MY) == 7', 'x')(job)).toBe(
      true,
    );
  });
  it('is refused where it does not parse, with its place', () => {
    expect(() => compileConstraint('JobStatus ==', 'constraint')).toThrow(/^constraint: /);
    expect(() => compileConstraint('a ? b : c d', '--constraint')).toThrow(
      /column 11: expected an operator or the end/,
    );
  });
});

describe('the layers of attributes', () => {
  const name = fc.constantFrom('Cmd', 'cmd', 'CMD', 'Args', 'args', 'aRGS', 'Iwd', 'iwd', '__proto__', 'constructor');
  const layer = fc.uniqueArray(fc.tuple(name, fc.option(fc.constantFrom('1', '"x"'))), {
    selector: ([one]) => one.toLowerCase(),
  });
  it('give the text of the uppermost one that has the name in any spelling', () => {
    fc.assert(
      fc.property(layer, layer, layer, name, (lowest, middle, top, asked) => {
        const low = (one: string) => one.toLowerCase();
        const expected = [top, middle, lowest].map((one) => one.find(([its]) => low(its) === low(asked))?.[1]);
        const text = expected.find((one) => one !== undefined);
        const of = (one: typeof layer extends fc.Arbitrary<infer T> ? T : never) => {
          const texts: Record<string, string | null> = {};
          for (const [key, value] of one) Object.defineProperty(texts, key, { value, enumerable: true });
          return texts;
        };
        const attrs = new Attrs(of(top), new Attrs(of(middle), new Attrs(of(lowest))));
        expect(attrs.get(asked)).toBe(text ?? undefined);
      }),
      { numRuns: 2000 },
    );
  });
});
