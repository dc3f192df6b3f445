/** What one line of a DAG file says. Names are as written; none has been looked up yet. */

export type NodeType = 'JOB' | 'FINAL' | 'PROVISIONER' | 'SERVICE' | 'SUBDAG';
export const SCRIPT_TYPES = ['PRE', 'POST', 'HOLD'] as const;
export type ScriptType = (typeof SCRIPT_TYPES)[number];

export interface NodeCommand {
  readonly cmd: 'node';
  readonly type: NodeType;
  readonly name: string;
  /** The submit file, the name of a SUBMIT-DESCRIPTION, or the DAG file of a SUBDAG. */
  readonly submit: string;
  /** The text between the braces. */
  readonly inline: string | undefined;
  readonly dir: string | undefined;
  readonly noop: boolean;
  readonly done: boolean;
}

/** How a node's script is run; an ALL_NODES command shares one between its nodes. */
export interface ScriptSpec {
  /** The script and its arguments, separated by blanks, with `$MACRO` words. */
  readonly command: string;
  /** Run the script again `seconds` later if it exits with `status`. */
  readonly defer: { readonly status: number; readonly seconds: number } | undefined;
  readonly debug: { readonly file: string; readonly stream: 'STDOUT' | 'STDERR' | 'ALL' } | undefined;
}

export interface NodeVar {
  readonly name: string;
  readonly value: string;
  /** Set before the submit description is read, which then overrides it; otherwise after. */
  readonly prepend: boolean;
}

export type Command =
  | NodeCommand
  | { readonly cmd: 'splice'; readonly name: string; readonly file: string; readonly dir: string | undefined }
  | { readonly cmd: 'description'; readonly name: string; readonly text: string }
  | { readonly cmd: 'include'; readonly file: string }
  | { readonly cmd: 'depend'; readonly parents: string[]; readonly children: string[]; readonly weak: boolean }
  | { readonly cmd: 'script'; readonly node: string; readonly type: ScriptType; readonly script: ScriptSpec }
  | { readonly cmd: 'retry'; readonly node: string; readonly max: number; readonly unlessExit: number | undefined }
  | { readonly cmd: 'abort'; readonly node: string; readonly status: number; readonly code: number | undefined }
  | {
      readonly cmd: 'vars';
      readonly node: string;
      readonly place: 'prepend' | 'append' | undefined;
      readonly pairs: readonly { readonly key: string; readonly value: string }[];
    }
  | { readonly cmd: 'priority'; readonly node: string; readonly value: number }
  | { readonly cmd: 'pre-skip'; readonly node: string; readonly status: number }
  | { readonly cmd: 'tolerance'; readonly node: string; readonly tolerance: Tolerance }
  | { readonly cmd: 'done'; readonly node: string }
  | { readonly cmd: 'category'; readonly node: string; readonly category: string }
  | { readonly cmd: 'maxjobs'; readonly category: string; readonly limit: number }
  | { readonly cmd: 'save-point'; readonly node: string; readonly file: string }
  | { readonly cmd: 'config'; readonly file: string }
  | { readonly cmd: 'dot'; readonly dot: DotSpec }
  | { readonly cmd: 'node-status'; readonly status: NodeStatusSpec }
  | { readonly cmd: 'jobstate'; readonly file: string }
  | { readonly cmd: 'set-attr'; readonly line: string }
  | { readonly cmd: 'env'; readonly action: 'SET'; readonly set: readonly (readonly [name: string, value: string])[] }
  | { readonly cmd: 'env'; readonly action: 'GET'; readonly names: readonly string[] }
  | { readonly cmd: 'reject' }
  | { readonly cmd: 'connect'; readonly from: string; readonly to: string }
  | { readonly cmd: 'pin'; readonly side: 'in' | 'out'; readonly node: string; readonly pin: number };

/** How many of a node's jobs may fail. */
export interface Tolerance {
  readonly limit: number;
  readonly percent: boolean;
  /** When the limit is exceeded: remove the node's other jobs or wait for them; undefined leaves it to the settings. */
  readonly mode: 'fail-fast' | 'wait' | undefined;
}

export interface DotSpec {
  readonly file: string;
  readonly update: boolean;
  readonly overwrite: boolean;
  readonly include: string | undefined;
}

export interface NodeStatusSpec {
  readonly file: string;
  /** The minimum number of seconds between two writes of the file. */
  readonly minUpdate: number;
  readonly alwaysUpdate: boolean;
}

const WORD: Readonly<Partial<Record<Command['cmd'], string>>> = {
  splice: 'SPLICE',
  description: 'SUBMIT_DESCRIPTION',
  include: 'INCLUDE',
  depend: 'PARENT',
  script: 'SCRIPT',
  retry: 'RETRY',
  abort: 'ABORT_DAG_ON',
  vars: 'VARS',
  priority: 'PRIORITY',
  'pre-skip': 'PRE_SKIP',
  tolerance: 'TOLERANCE',
  done: 'DONE',
  category: 'CATEGORY',
  maxjobs: 'MAXJOBS',
  'save-point': 'SAVE_POINT_FILE',
  reject: 'REJECT',
  connect: 'CONNECT',
  config: 'CONFIG',
  'set-attr': 'SET_JOB_ATTR',
  env: 'ENV',
};

/** The keyword of a command, for messages about it. */
export function wordOf(command: Command): string | undefined {
  return command.cmd === 'node' ? command.type : WORD[command.cmd];
}
