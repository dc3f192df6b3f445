import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  jobArguments,
  jobEnvironment,
  parseArgsV1,
  parseArgsV2,
  parseArgsV2Quoted,
  parseEnvQuotedOrV1,
  parseEnvV1,
  parseEnvV2,
  printArgsV1,
  printArgsV2,
  printEnvV1,
  printEnvV2,
} from '../../src/submit/api.ts';
import { column, refusal, submit, world } from './support.ts';

const word = fc.string({ unit: fc.constantFrom('a', ' ', "'", '"', '\t', '\n', '\r', '\\', '$', '=', ';', 'é', '☃') });

describe('arguments', () => {
  it('V2 gives back any words', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(word, fc.string({ unit: 'binary' }))), (words) => {
        expect(parseArgsV2(printArgsV2(words))).toEqual({ ok: true, value: words });
      }),
    );
  });

  it('V2 in double quotes gives back any words', () => {
    fc.assert(
      fc.property(fc.array(word), (words) => {
        const text = ` "${printArgsV2(words).replaceAll('"', '""')}" `;
        expect(parseArgsV2Quoted(text)).toEqual({ ok: true, value: words });
      }),
    );
  });

  it('V1 gives back words that it can say, and says which it cannot', () => {
    fc.assert(
      fc.property(fc.array(word), (words) => {
        const text = printArgsV1(words);
        const sayable = words.every((one) => /^[^ \t\n\r]+$/.test(one));
        expect(text === undefined ? undefined : parseArgsV1(text)).toEqual(sayable ? words : undefined);
      }),
    );
  });

  it('are read from an ad, whichever syntax it has', () => {
    expect(jobArguments(new Map([['Args', '"a  \\"b\\""']]))).toEqual(['a', '"b"']);
    expect(jobArguments(new Map([['Arguments', `"a' 'b '' c"`]]))).toEqual(['a b', '', 'c']);
    expect(jobArguments(new Map())).toEqual([]);
    expect(() => jobArguments(new Map([['Arguments', `"a 'b"`]]))).toThrow(/Unbalanced quote starting here: 'b/);
  });

  it('are kept as the real tool writes them', () => {
    expect(column('Arguments', `arguments = "one 'two words' 'it''s' ""dq"" ''"\nqueue`)).toEqual([
      `"one two' 'words it''''s \\"dq\\" ''"`,
    ]);
    expect(refusal(`arguments = "a 'b"\nqueue`).message).toContain("Unbalanced quote starting here: 'b");
  });
});

describe('environment', () => {
  const name = fc.string({ unit: fc.constantFrom('A', 'b', '_', ' ', '1'), minLength: 1 });

  it('V2 gives back any variables', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(name, word)), (entries) => {
        const variables = new Map(entries);
        const parsed = parseEnvV2(printEnvV2(variables));
        expect(parsed).toMatchObject({ ok: true, value: variables });
      }),
    );
  });

  it('V1 gives back variables that it can say', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.constantFrom('A', 'B', 'C_1'), word)), (entries) => {
        const variables = new Map(entries);
        const text = printEnvV1(variables);
        const sayable = ![...variables.values()].some((value) => /[;\n]/.test(value));
        const back = text === undefined ? undefined : parseEnvV1(text);
        expect(back).toEqual(sayable ? { ok: true, value: variables } : undefined);
      }),
    );
  });

  it('takes both syntaxes, and names what is wrong', () => {
    expect(parseEnvQuotedOrV1('A=1;B=two words')).toEqual({
      ok: true,
      value: new Map([
        ['A', '1'],
        ['B', 'two words'],
      ]),
    });
    expect(parseEnvQuotedOrV1(`"A=1 B='two words'"`)).toEqual({
      ok: true,
      value: new Map([
        ['A', '1'],
        ['B', 'two words'],
      ]),
    });
    expect(parseEnvQuotedOrV1('|A=1;2|B=3')).toEqual({
      ok: true,
      value: new Map([
        ['A', '1;2'],
        ['B', '3'],
      ]),
    });
    expect(refusal('environment = "A"\nqueue').message).toContain("Missing '=' after environment variable 'A'");
    expect(jobEnvironment(new Map([['Env', '"A=1;B=2"']]))).toEqual({ A: '1', B: '2' });
    expect(
      jobEnvironment(
        new Map([
          ['Env', '"A=1|B=2"'],
          ['EnvDelim', '"|"'],
        ]),
      ),
    ).toEqual({ A: '1', B: '2' });
  });

  it('takes over what getenv names', () => {
    const here = { world: world({}, { AA: '1', AB: '2', BB: 'x y', NL: 'a\nb', aC: '3' }) };
    const environment = (lines: string): string | undefined => column('Environment', `${lines}\nqueue`, here)[0];
    expect(environment('getenv = A*, !ab')).toBe('"AA=1 aC=3"');
    expect(environment('getenv = !A*')).toBe(`"BB=x' 'y"`);
    expect(environment('getenv = true')).toBe(`"AA=1 AB=2 BB=x' 'y aC=3"`);
    expect(environment('getenv = false')).toBe('""');
    expect(environment('getenv = AA\nenvironment = "AA=mine"')).toBe('"AA=mine"');
  });

  it('refuses what getenv names and is not UTF-8, as Node has read it', () => {
    const latin1 = { world: world({}, { FINE: '1', CAFE: Buffer.from('caf\xe9', 'latin1').toString('utf8') }) };
    const parsed = (lines: string) => () => submit(`executable = job.sh\n${lines}\nqueue`, latin1);
    expect(parsed('getenv = F*, C*')).toThrow(
      expect.objectContaining({
        message:
          'on Line 2 of job.sub: The environment variable CAFE, which getenv imports, is not UTF-8; the job would receive different bytes.',
        suggestions: ['Leave it out with: getenv = F*, C*, !CAFE', 'Or set it to a text in UTF-8.'],
      }),
    );
    expect(parsed('getenv = true')).toThrow(/CAFE/);
    expect(parsed('getenv = !CAFE')).not.toThrow();
    expect(parsed('getenv = FINE')).not.toThrow();
  });
});
