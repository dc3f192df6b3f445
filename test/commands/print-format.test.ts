import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { evaluator } from '../../src/commands/evaluate.ts';
import { parsePrintFormat } from '../../src/commands/print-format/parse.ts';
import { renderPrintFormat } from '../../src/commands/print-format/render.ts';
import type { Evaluate } from '../../src/commands/show/autoformat.ts';
import { parseExpr } from '../../src/classad/api.ts';
import { recordedJob } from './recordings.ts';

const zone = process.env['TZ'];
let evaluate: Evaluate;
beforeAll(async () => {
  process.env['TZ'] = 'UTC';
  evaluate = await evaluator();
});
afterAll(() => {
  if (zone === undefined) delete process.env['TZ'];
  else process.env['TZ'] = zone;
});

const ADS = [
  recordedJob('q-idle-l.txt', 'condor_q -l 39.0'),
  recordedJob('q-running-l.txt', 'condor_q -l 40.0'),
  recordedJob('q-held-submit-l.txt', 'condor_q -l 41.0'),
].map(({ ad }) => ad);

function parses(text: string): boolean {
  try {
    parseExpr(text);
    return true;
  } catch {
    return false;
  }
}
const parse = (text: string) => parsePrintFormat(text, 'f.cpf', parses);
const table = (text: string, ads = ADS) => renderPrintFormat(ads, parse(text), evaluate, 1_763_681_800);

describe('a print format', () => {
  it('makes the table that the manual makes with it', () => {
    const lines = table(`# condor_q's own
SELECT
   ClusterId     AS " ID"      NOSUFFIX WIDTH 4
   ProcId        AS " "        NOPREFIX             PRINTF ".%-3d"
   Owner         AS "OWNER"         WIDTH -14  PRINTAS OWNER
   QDate         AS "  SUBMITTED"   WIDTH 11   PRINTAS QDATE
   JobStatus     AS ST         PRINTAS JOB_STATUS
   JobPrio       AS PRI
   Cmd           AS CMD        PRINTAS JOB_DESCRIPTION
SUMMARY STANDARD
`);
    expect(lines[0]).toBe('  ID     OWNER            SUBMITTED ST PRI CMD');
    expect(lines.slice(1).map((line) => line.slice(0, 24))).toEqual([
      '  39.0   htcuser        ',
      '  40.0   htcuser        ',
      '  41.0   htcuser        ',
    ]);
    expect(lines.slice(1).map((line) => line.slice(24).split(/ +/)[2])).toEqual(['I', 'R', 'H']);
  });

  it('chooses, sorts, cuts, fills and counts with expressions', () => {
    const text = `SELECT NOHEADER
ClusterId * 2 AS twice PRINTF "%05d"
strcat("<", Owner, ">") AS o WIDTH -5 TRUNCATE
NoSuch WIDTH 3 OR ??
RequestMemory / 3.0 PRINTF "%.1f"
WHERE JobStatus =!= 2
AND ClusterId > 0
GROUP BY ClusterId DESCENDING
`;
    expect(table(text)).toEqual(['00082 <htcu ??? 42.7', '00078 <htcu ??? 42.7']);
    expect(parse(text)).toMatchObject({ heads: false, title: true, summary: true });
    expect(parse('SELECT BARE\nA\n')).toMatchObject({ heads: false, title: false, summary: false });
    expect(parse('SELECT\nA\nSUMMARY NONE\n')).toMatchObject({ heads: true, title: true, summary: false });
  });

  it('labels values, and shows what a conversion cannot take as it is', () => {
    const ad = { A: '7', B: '"x\\ty"', Size: '2048', S: '"\u001b[31m"' };
    expect(table('SELECT LABEL SEPARATOR ": "\nA AS a\nB AS b PRINTF "%d"\n', [ad])).toEqual(['a: 7 b: x\\ty']);
    expect(table('SELECT NOHEADER\nSize PRINTAS READABLE_KB\nS\n', [ad])[0]).not.toContain('\u001b');
    expect(table('SELECT NOHEADER\nSize PRINTAS READABLE_KB\n', [ad])).toEqual(['2.0 MB']);
  });

  it.each([
    ['', /^f\.cpf: there is no SELECT/],
    ['SELECT\n', /^f\.cpf: SELECT has no columns/],
    ['\nClusterId\n', /^f\.cpf, line 2: A print format begins with SELECT/],
    ['SELECT BAER\nA\n', /^f\.cpf, line 1: SELECT does not know "BAER"/],
    ['SELECT\nA +\n', /^f\.cpf, line 2: "A \+" is not a ClassAd expression/],
    ['SELECT\nA\n# x\nB PRINTAS NOTHING\n', /^f\.cpf, line 4: PRINTAS does not know NOTHING/],
    ['SELECT\nA WIDTH wide\n', /^f\.cpf, line 2: WIDTH is AUTO or a number/],
    ['SELECT\nA AS\n', /^f\.cpf, line 2: AS needs a value/],
    ['SELECT\nA PRINTF "x"\n', /^f\.cpf, line 2: PRINTF takes one conversion/],
    ['SELECT\nA\nWHERE ((\n', /^f\.cpf, line 3: "\(\(" is not a ClassAd/],
    ['SELECT\nA\nSUMMARY maybe\n', /^f\.cpf, line 3: SUMMARY is/],
  ])('%j is refused with its line', (text, message) => {
    expect(() => parse(text)).toThrow(message);
  });
});
