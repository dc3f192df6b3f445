import type { Problem } from './problem.ts';

interface Knob {
  readonly type: 'boolean' | 'integer' | 'string';
  readonly default: boolean | number | string;
}

/**
 * The settings of a DAG manager, with their names in HTCondor's configuration and its defaults (manual, "DAGMan
 * configuration").
 */
const KNOBS = {
  DAGMAN_USE_STRICT: { type: 'integer', default: 1 },
  DAGMAN_STARTUP_CYCLE_DETECT: { type: 'boolean', default: false },
  DAGMAN_USE_JOIN_NODES: { type: 'boolean', default: true },
  DAGMAN_MUNGE_NODE_NAMES: { type: 'boolean', default: true },
  DAGMAN_ALLOW_ANY_NODE_NAME_CHARACTERS: { type: 'boolean', default: false },
  DAGMAN_SUBMIT_DEPTH_FIRST: { type: 'boolean', default: false },
  DAGMAN_ALWAYS_RUN_POST: { type: 'boolean', default: false },
  DAGMAN_DEFAULT_APPEND_VARS: { type: 'boolean', default: false },
  DAGMAN_RETRY_NODE_FIRST: { type: 'boolean', default: false },
  DAGMAN_RETRY_SUBMIT_FIRST: { type: 'boolean', default: true },
  DAGMAN_MAX_JOBS_IDLE: { type: 'integer', default: 1000 },
  DAGMAN_MAX_JOBS_SUBMITTED: { type: 'integer', default: 0 },
  DAGMAN_MAX_PRE_SCRIPTS: { type: 'integer', default: 20 },
  DAGMAN_MAX_POST_SCRIPTS: { type: 'integer', default: 20 },
  DAGMAN_MAX_HOLD_SCRIPTS: { type: 'integer', default: 20 },
  DAGMAN_MAX_SUBMIT_ATTEMPTS: { type: 'integer', default: 6 },
  DAGMAN_MAX_RESCUE_NUM: { type: 'integer', default: 100 },
  DAGMAN_AUTO_RESCUE: { type: 'boolean', default: true },
  DAGMAN_RESET_RETRIES_UPON_RESCUE: { type: 'boolean', default: true },
  DAGMAN_MAX_JOB_HOLDS: { type: 'integer', default: 100 },
  DAGMAN_NODE_JOB_FAILURE_TOLERANCE: { type: 'integer', default: 0 },
  DAGMAN_REMOVE_JOB_LIST_ON_FAILURE: { type: 'boolean', default: true },
  DAGMAN_REMOVE_NODE_JOBS: { type: 'boolean', default: true },
  DAGMAN_PUT_FAILED_JOBS_ON_HOLD: { type: 'boolean', default: false },
  DAGMAN_PROHIBIT_MULTI_JOBS: { type: 'boolean', default: false },
  DAGMAN_SUPPRESS_NOTIFICATION: { type: 'boolean', default: false },
  DAGMAN_SUPPRESS_JOB_LOGS: { type: 'boolean', default: false },
  DAGMAN_DEFAULT_PRIORITY: { type: 'integer', default: 0 },
  DAGMAN_QUEUE_UPDATE_INTERVAL: { type: 'integer', default: 5 },
  DAGMAN_REMOVE_JOBS_AFTER_LIMIT_CHANGE: { type: 'boolean', default: false },
  DAGMAN_NODE_RECORD_INFO: { type: 'string', default: '' },
  DAGMAN_RECORD_MACHINE_ATTRS: { type: 'string', default: '' },
  DAGMAN_INHERIT_ATTRS: { type: 'string', default: '' },
  DAGMAN_INHERIT_ATTRS_PREFIX: { type: 'string', default: '' },
  DAGMAN_DEFAULT_NODE_LOG: { type: 'string', default: '@(DAG_DIR)/@(DAG_FILE).nodes.log' },
  DAGMAN_METRICS_FILE_VERSION: { type: 'integer', default: 2 },
} as const satisfies Record<string, Knob>;

export type KnobName = keyof typeof KNOBS;

type Widened<T> = T extends 'boolean' ? boolean : T extends 'integer' ? number : string;

export type DagSettings = { readonly [K in KnobName]: Widened<(typeof KNOBS)[K]['type']> };

export const DEFAULT_SETTINGS: DagSettings = Object.fromEntries(
  Object.entries(KNOBS).map(([name, knob]) => [name, knob.default]),
) as DagSettings;

/**
 * Settings of HTCondor's DAGMan that have nothing to control here. They are accepted silently, so that the CONFIG file
 * of a DAG written for HTCondor works.
 */
const WITHOUT_MEANING = new Set([
  'DAGMAN_USER_LOG_SCAN_INTERVAL',
  'DAGMAN_MAX_SUBMITS_PER_INTERVAL',
  'DAGMAN_SUBMIT_DELAY',
  'DAGMAN_VERBOSITY',
  'DAGMAN_WRITE_PARTIAL_RESCUE',
  'DAGMAN_USE_DIRECT_SUBMIT',
  'DAGMAN_GENERATE_SUBDAG_SUBMITS',
  'DAGMAN_HOLD_CLAIM_TIME',
  'DAGMAN_AGGRESSIVE_SUBMIT',
  'DAGMAN_ALLOW_EVENTS',
  'DAGMAN_DEBUG',
  'DAGMAN_PENDING_REPORT_INTERVAL',
  'DAGMAN_CHECK_QUEUE_INTERVAL',
  'DAGMAN_PRINT_JOB_TABLE_INTERVAL',
  'DAGMAN_LOG_ON_NFS_IS_ERROR',
  'DAGMAN_ABORT_DUPLICATES',
  'DAGMAN_ABORT_ON_SCARY_SUBMIT',
  'DAGMAN_PRODUCE_JOB_CREDENTIALS',
  'DAGMAN_REPORT_GRAPH_METRICS',
]);

/** Applies the text of a CONFIG file to `base`. A faulty setting is reported and keeps its value. */
export function readSettings(
  text: string,
  file: string,
  report: (problem: Problem) => void,
  base: DagSettings = DEFAULT_SETTINGS,
): DagSettings {
  const settings: Record<string, boolean | number | string> = { ...base };
  const lines = text.split('\n');
  for (let i = 0; i < lines.length; i++) {
    let said = (lines[i] ?? '').trim();
    while (said.endsWith('\\') && i + 1 < lines.length) said = `${said.slice(0, -1)} ${(lines[++i] ?? '').trim()}`;
    if (said === '' || said.startsWith('#')) continue;
    const say = (severity: Problem['severity'], message: string, remedy?: string): void =>
      report({ file, line: i + 1, severity, message, ...(remedy === undefined ? {} : { remedy }) });
    const equals = said.indexOf('=');
    if (equals < 1) {
      say('error', `'${said}' is not a setting`, 'Write NAME = value.');
      continue;
    }
    const name = said.slice(0, equals).trim().toUpperCase();
    const value = said.slice(equals + 1).trim();
    if (!Object.hasOwn(KNOBS, name)) {
      if (!WITHOUT_MEANING.has(name)) say('warning', `The setting ${name} is not known and has no effect`);
      continue;
    }
    const read = readValue(KNOBS[name as KnobName].type, value);
    if (read === undefined) say('error', `${name} cannot be '${value}'`, `Give it ${wanted(name as KnobName)}.`);
    else settings[name] = read;
  }
  return settings as DagSettings;
}

function readValue(type: Knob['type'], value: string): boolean | number | string | undefined {
  if (type === 'string') return value;
  if (type === 'integer') return /^[+-]?\d{1,9}$/.test(value) ? Number(value) : undefined;
  if (/^(true|t|yes|1)$/i.test(value)) return true;
  return /^(false|f|no|0)$/i.test(value) ? false : undefined;
}

function wanted(name: KnobName): string {
  return KNOBS[name].type === 'boolean' ? 'True or False' : 'a whole number';
}
