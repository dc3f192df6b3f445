import { didYouMean } from '../../util/did-you-mean.ts';
import { Complaint, type Problem } from './problem.ts';
import type { Command } from './commands.ts';
import { Lexer } from './lexer.ts';
import { LineReader } from './lines.ts';
import * as files from './parse-files.ts';
import * as modifiers from './parse-modifiers.ts';
import { type ParseContext, parseDescription, parseNode, parseSplice } from './parse-nodes.ts';
import { type Keyword, keywordOf, SYNTAX } from './syntax.ts';

const PARSERS: Readonly<Record<Keyword, (words: Lexer, context: ParseContext, first: string) => Command>> = {
  JOB: (words, context) => parseNode('JOB', words, context),
  FINAL: (words, context) => parseNode('FINAL', words, context),
  PROVISIONER: (words, context) => parseNode('PROVISIONER', words, context),
  SERVICE: (words, context) => parseNode('SERVICE', words, context),
  SUBDAG: (words, context) => parseNode('SUBDAG', words, context),
  SPLICE: parseSplice,
  INCLUDE: (words) => ({ cmd: 'include', file: files.parseFile(words, 'No include file specified') }),
  SUBMIT_DESCRIPTION: parseDescription,
  CATEGORY: modifiers.parseCategory,
  PARENT: (words, _context, first) => modifiers.parseDepend(words, first.length === 4),
  SCRIPT: modifiers.parseScript,
  RETRY: modifiers.parseRetry,
  ABORT_DAG_ON: modifiers.parseAbort,
  VARS: modifiers.parseVars,
  PRIORITY: modifiers.parsePriority,
  PRE_SKIP: modifiers.parsePreSkip,
  TOLERANCE: modifiers.parseTolerance,
  DONE: modifiers.parseDone,
  MAXJOBS: modifiers.parseMaxJobs,
  CONFIG: (words) => ({ cmd: 'config', file: files.parseFile(words, 'No configuration file specified') }),
  DOT: files.parseDot,
  NODE_STATUS_FILE: files.parseNodeStatus,
  JOBSTATE_LOG: (words) => ({ cmd: 'jobstate', file: files.parseFile(words, 'No include file specified') }),
  SAVE_POINT_FILE: modifiers.parseSavePoint,
  SET_JOB_ATTR: files.parseSetAttr,
  ENV: files.parseEnv,
  REJECT: files.parseReject,
  CONNECT: files.parseConnect,
  PIN_IN: (words) => files.parsePin(words, 'in'),
  PIN_OUT: (words) => files.parsePin(words, 'out'),
};

/** Keywords of commands that a block of lines may follow. */
const WITH_BLOCK: ReadonlySet<Keyword> = new Set(['JOB', 'FINAL', 'PROVISIONER', 'SERVICE', 'SUBMIT_DESCRIPTION']);

/**
 * Passes the commands of the DAG file `text` that have one of the keywords `wanted` to `take`, in order, with their
 * line numbers (the last one of a continued line). A malformed line is reported and skipped. The commands are not
 * stored: a file of a million lines is scanned once for each purpose.
 */
export function eachCommand(
  text: string,
  file: string,
  wanted: ReadonlySet<Keyword>,
  report: (problem: Problem) => void,
  take: (command: Command, line: number) => void,
  unknown: 'report' | 'skip' = 'report',
): void {
  const reader = new LineReader(text);
  const context: ParseContext = { lines: reader, file };
  for (;;) {
    let keyword: Keyword | undefined;
    let line = reader.line + 1;
    try {
      const said = reader.next();
      if (said === undefined) return;
      line = reader.line;
      // Only the keyword is examined first: most lines belong to another pass and are skipped.
      const blank = said.search(/[ \t\r]/);
      keyword = keywordOf(blank < 0 ? said : said.slice(0, blank));
      if (keyword !== undefined && !wanted.has(keyword) && !WITH_BLOCK.has(keyword)) continue;
      const words = new Lexer(said);
      const first = words.next();
      if (keyword === undefined) {
        if (unknown === 'skip') continue;
        throw unknownCommand(first);
      }
      if (wanted.has(keyword)) take(PARSERS[keyword](words, context, first), line);
      else if (WITH_BLOCK.has(keyword) && /\{|@=/.test(said)) PARSERS[keyword](words, context, first);
    } catch (thrown) {
      if (!(thrown instanceof Complaint)) throw thrown;
      if (keyword === undefined ? unknown === 'skip' : !wanted.has(keyword)) continue;
      const remedy = thrown.remedy ?? (keyword === undefined ? undefined : `Syntax: ${SYNTAX[keyword]}`);
      report({
        file,
        line,
        severity: 'error',
        message: thrown.message,
        ...(keyword === undefined ? {} : { command: keyword }),
        ...(remedy === undefined ? {} : { remedy }),
      });
    }
  }
}

function unknownCommand(word: string): Complaint {
  const near = didYouMean(word.replaceAll('-', '_'), Object.keys(SYNTAX));
  return new Complaint(
    `'${word.replaceAll('-', '_')}' is not a valid DAG command`,
    near === undefined ? undefined : `Did you mean ${near}?`,
  );
}
