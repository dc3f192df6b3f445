/** The commands of the language by keyword, with the syntax of each (manual, "DAG input file commands"). */
export const SYNTAX = {
  JOB: 'JOB <name> <submit description> [DIR <directory>] [NOOP] [DONE]',
  FINAL: 'FINAL <name> <submit description> [DIR <directory>] [NOOP]',
  PROVISIONER: 'PROVISIONER <name> <submit description> [DIR <directory>] [NOOP]',
  SERVICE: 'SERVICE <name> <submit description> [DIR <directory>] [NOOP]',
  SUBDAG: 'SUBDAG EXTERNAL <name> <dag file> [DIR <directory>] [NOOP] [DONE]',
  SPLICE: 'SPLICE <name> <dag file> [DIR <directory>]',
  INCLUDE: 'INCLUDE <dag file>',
  SUBMIT_DESCRIPTION: 'SUBMIT-DESCRIPTION <name> { … } with the braces at the ends of their lines',
  CATEGORY: 'CATEGORY <node> <name>',
  PARENT: '[WEAK] PARENT <node> … CHILD <node> …',
  SCRIPT:
    'SCRIPT [DEFER <status> <seconds>] [DEBUG <file> STDOUT|STDERR|ALL] PRE|POST|HOLD <node> <script> [<argument> …]',
  RETRY: 'RETRY <node> <max retries> [UNLESS-EXIT <code>]',
  ABORT_DAG_ON: 'ABORT-DAG-ON <node> <status> [RETURN <code>]',
  VARS: 'VARS <node> [PREPEND|APPEND] <name>="<value>" …',
  PRIORITY: 'PRIORITY <node> <value>',
  PRE_SKIP: 'PRE_SKIP <node> <status>',
  TOLERANCE: 'TOLERANCE <node> <value>[%] [FAIL-FAST|WAIT]',
  DONE: 'DONE <node>',
  MAXJOBS: 'MAXJOBS <category> <limit>',
  CONFIG: 'CONFIG <file>',
  DOT: 'DOT <file> [UPDATE|DONT-UPDATE] [OVERWRITE|DONT-OVERWRITE] [INCLUDE <header file>]',
  NODE_STATUS_FILE: 'NODE_STATUS_FILE <file> [<min update seconds>] [ALWAYS-UPDATE]',
  JOBSTATE_LOG: 'JOBSTATE_LOG <file>',
  SAVE_POINT_FILE: 'SAVE_POINT_FILE <node> [<file>]',
  SET_JOB_ATTR: 'SET_JOB_ATTR <name> = <value>',
  ENV: 'ENV SET|GET <environment variables>',
  REJECT: 'REJECT',
  CONNECT: 'CONNECT <splice> <splice>',
  PIN_IN: 'PIN_IN <node> <pin number>',
  PIN_OUT: 'PIN_OUT <node> <pin number>',
} as const;

export type Keyword = keyof typeof SYNTAX;

/** `-` and `_` are equivalent, as are upper and lower case. */
export function sameWord(word: string, keyword: string): boolean {
  if (word === keyword) return true;
  return word.length === keyword.length && word.toUpperCase().replaceAll('-', '_') === keyword;
}

const EXACT: ReadonlyMap<string, Keyword> = new Map((Object.keys(SYNTAX) as Keyword[]).map((word) => [word, word]));

/** The keyword at the beginning of a line. `WEAK` begins a PARENT command. */
export function keywordOf(word: string): Keyword | undefined {
  const exact = EXACT.get(word);
  if (exact !== undefined) return exact;
  const keyword = word.toUpperCase().replaceAll('-', '_');
  if (keyword === 'WEAK') return 'PARENT';
  return Object.hasOwn(SYNTAX, keyword) ? (keyword as Keyword) : undefined;
}

export function isAllNodes(name: string): boolean {
  return name.length === 9 && name[3] === '_' && name.toUpperCase() === 'ALL_NODES';
}

/** Names that a node may not have. */
export function isReserved(name: string): boolean {
  const upper = name.toUpperCase();
  return upper === 'PARENT' || upper === 'CHILD' || upper === 'ALL_NODES';
}

/** Commands about the DAG manager's own job, which count only in the DAG's own files. */
export const FOR_THE_MANAGER: ReadonlySet<Keyword> = new Set(['CONFIG', 'SET_JOB_ATTR', 'ENV']);

/** A quick check that saves parsing the file for these commands. */
export function mentionsTheManager(text: string): boolean {
  return /^[ \t]*(CONFIG|ENV|SET[-_]JOB[-_]ATTR)\b/im.test(text);
}

/** Commands that define nodes or concern the DAG as a whole; read in the first pass. */
export const DEFINITIONS: ReadonlySet<Keyword> = new Set([
  'SUBMIT_DESCRIPTION',
  'JOB',
  'FINAL',
  'PROVISIONER',
  'SERVICE',
  'SUBDAG',
  'SPLICE',
  'REJECT',
  'DOT',
  'NODE_STATUS_FILE',
  'JOBSTATE_LOG',
]);

/** Commands about existing nodes; read in the second pass. */
export const MODIFIERS: ReadonlySet<Keyword> = new Set(
  (Object.keys(SYNTAX) as Keyword[]).filter((word) => !DEFINITIONS.has(word) && !FOR_THE_MANAGER.has(word)),
);
