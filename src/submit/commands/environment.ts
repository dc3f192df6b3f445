import { booleanOf } from '../calculate.ts';
import type { Environment } from '../env.ts';
import { importEnvironment, parseEnvQuotedOrV1, printEnvV1, printEnvV2 } from '../env.ts';
import { isV2Quoted } from '../argv.ts';
import type { JobMaker, Step } from '../maker.ts';

/** What stands in Node's texts for bytes that are not UTF-8. */
const NOT_UTF8 = '\uFFFD';

function parse(job: JobMaker, text: string, command: string): Environment {
  const parsed = parseEnvQuotedOrV1(text);
  if (parsed.ok) return parsed.value;
  throw job.fault(command, `${parsed.reason}\nThe environment you specified was: '${text}'`, [
    'Write environment = "NAME=value OTHER=\'two words\'".',
  ]);
}

/** The variables imported by `getenv`; in a V1 environment no value may contain its delimiter. */
function imported(job: JobMaker, v1: boolean): Map<string, string> {
  const list = job.param('getenv', 'get_env');
  const all = list === undefined ? undefined : booleanOf(list);
  if (list === undefined || all === false) return new Map();
  const taken = importEnvironment(all ?? list, job.world.environment);
  for (const [name, value] of taken) {
    if (!`${name}${value}`.includes(NOT_UTF8)) job.scope.seen.set(name, value);
    else {
      const without = all === true ? `!${name}` : `${list}, !${name}`;
      throw job.fault(
        'getenv',
        `The environment variable ${name}, which getenv imports, is not UTF-8; the job would receive different bytes.`,
        [`Leave it out with: getenv = ${without}`, 'Or set it to a text in UTF-8.'],
        'get_env',
      );
    }
  }
  if (v1) for (const [name, value] of taken) if (value.includes(';')) taken.delete(name);
  return taken;
}

export const environment: Step = {
  name: 'environment',
  run(job) {
    const first = job.param('environment', 'env');
    const second = job.param('environment2');
    const both = job.boolParam('allow_environment_v1') ?? false;
    if (first !== undefined && second !== undefined && !both) {
      throw job.fault(
        'environment2',
        "If you wish to specify both 'environment' and 'environment2' for maximal compatibility with different versions of " +
          'Condor, then you must also specify allow_environment_v1=true.',
        ["Keep one of 'environment' and 'environment2'."],
      );
    }
    if (second !== undefined && !isV2Quoted(second)) {
      throw job.fault(
        'environment2',
        `Expecting a double-quoted environment string (V2 format).\nThe environment you specified was: '${second}'`,
      );
    }
    const own = second ?? first;
    const given =
      own === undefined ? new Map() : parse(job, own, second === undefined ? 'environment' : 'environment2');
    const variables: Environment = new Map([...imported(job, first !== undefined && second === undefined), ...given]);
    const hasV1 = job.draft.has('Env');
    const hasV2 = job.draft.has('Environment');
    if (own === undefined && variables.size === 0 && (hasV1 || hasV2)) return;
    const short = first !== undefined && second === undefined ? job.param('env') : undefined;
    const prefersV1 = short !== undefined && !isV2Quoted(short);
    if (prefersV1 || hasV1) setV1(job, variables);
    if (!prefersV1 || hasV2) job.setString('Environment', printEnvV2(variables));
  },
};

function setV1(job: JobMaker, variables: Environment): void {
  const text = printEnvV1(variables);
  if (text === undefined) {
    throw job.fault('env', 'failed to insert environment into job ad: an entry is not compatible with V1 syntax', [
      'Use environment = "…".',
    ]);
  }
  job.setString('Env', text);
  job.setString('EnvDelim', ';');
}
