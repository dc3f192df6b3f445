import type { Parsed } from '../argv.ts';
import { isV2Quoted, parseArgsV1, parseArgsV2Quoted, printArgsV1, printArgsV2, unescapeArgsV1 } from '../argv.ts';
import type { JobMaker, Step } from '../maker.ts';
import { UNIVERSE } from '../../job/universe.ts';

interface Words {
  readonly words: readonly string[];
  readonly v1: boolean;
}

function parse(text: string, onlyV2: boolean): Parsed<Words> {
  if (onlyV2 || isV2Quoted(text)) {
    const words = parseArgsV2Quoted(text);
    return words.ok ? { ok: true, value: { words: words.value, v1: false } } : words;
  }
  const raw = unescapeArgsV1(text);
  return raw.ok ? { ok: true, value: { words: parseArgsV1(raw.value), v1: true } } : raw;
}

function refuseBoth(job: JobMaker, first: string, second: string): Error {
  return job.fault(
    second,
    `If you wish to specify both '${first}' and '${second}' for maximal compatibility with different versions of Condor, ` +
      'then you must also specify allow_arguments_v1=true.',
    [`Keep one of '${first}' and '${second}'.`],
  );
}

function words(job: JobMaker, text: string, onlyV2: boolean, command: string, attribute?: string): Words {
  const parsed = parse(text, onlyV2);
  if (parsed.ok) return parsed.value;
  throw job.fault(
    command,
    `${parsed.reason}\nThe full arguments you specified were: ${text}`,
    ["In the new syntax, all arguments are in double quotes; ' groups, and \" or ' inside is written twice."],
    attribute,
  );
}

export const args: Step = {
  name: 'arguments',
  run(job) {
    const first = job.param('arguments', 'Args');
    const second = job.param('arguments2');
    const shell = job.param('shell');
    const both = job.boolParam('allow_arguments_v1') ?? false;
    if (shell !== undefined) return job.setString('Arguments', printArgsV2(['-c', shell]));
    if (first !== undefined && second !== undefined && !both) throw refuseBoth(job, 'arguments', 'arguments2');
    const text = second ?? first;
    if (text === undefined && (job.draft.has('Args') || job.draft.has('Arguments'))) return;
    const given =
      text === undefined
        ? { words: [], v1: false }
        : words(job, text, second !== undefined, second === undefined ? 'arguments' : 'arguments2', 'Args');
    if (given.v1) job.setString('Args', printArgsV1(given.words) ?? '');
    else job.setString('Arguments', printArgsV2(given.words));
    if (job.kind.universe === UNIVERSE.java && given.words.length === 0) {
      throw job.fault('arguments', 'In Java universe, you must specify the class name to run.', [
        'arguments = MyClass',
      ]);
    }
  },
};

/** The arguments of the Java virtual machine and of a tool daemon: the same two syntaxes under other names. */
interface OtherArgs {
  readonly old: string;
  readonly v1: string;
  readonly v2: string;
  readonly attribute: string;
  readonly attributeV2: string;
}

function setOtherArgs(job: JobMaker, names: OtherArgs): void {
  const old = job.param(names.old);
  const first = job.param(names.v1, names.attribute);
  const second = job.param(names.v2);
  if (old !== undefined && first !== undefined) {
    throw job.fault(names.v1, `you specified a value for both ${names.old} and ${names.v1}.`);
  }
  const both = job.boolParam('allow_arguments_v1') ?? false;
  const text = second ?? first ?? old;
  if (second !== undefined && (first ?? old) !== undefined && !both) throw refuseBoth(job, names.v1, names.v2);
  if (text === undefined) return;
  const given = words(job, text, second !== undefined, names.v1, names.old);
  if (given.words.length === 0) return;
  if (given.v1) job.setString(names.attribute, printArgsV1(given.words) ?? '');
  else job.setString(names.attributeV2, printArgsV2(given.words));
}

export const javaArgs: Step = {
  name: 'java_vm_args',
  run(job) {
    if (job.kind.universe !== UNIVERSE.java) {
      for (const command of ['jar_files', 'java_vm_args', 'java_vm_arguments', 'java_vm_arguments2'])
        if (job.param(command) !== undefined)
          job.warn(`${command} has no effect. It is for the java universe.`, command);
    }
    setOtherArgs(job, {
      old: 'java_vm_args',
      v1: 'java_vm_arguments',
      v2: 'java_vm_arguments2',
      attribute: 'JavaVMArgs',
      attributeV2: 'JavaVMArguments',
    });
  },
};

export const toolDaemon: Step = {
  name: 'tool_daemon',
  run(job) {
    const command = job.param('tool_daemon_cmd', 'ToolDaemonCmd');
    if (command === undefined) return;
    job.setString('ToolDaemonCmd', command);
    for (const stream of ['Input', 'Output', 'Error']) {
      const file = job.param(`tool_daemon_${stream.toLowerCase()}`, `ToolDaemon${stream}`);
      if (file !== undefined) job.setString(`ToolDaemon${stream}`, file);
    }
    const suspend = job.boolParam('suspend_job_at_exec', 'SuspendJobAtExec');
    if (suspend !== undefined) job.setBool('SuspendJobAtExec', suspend);
    setOtherArgs(job, {
      old: 'tool_daemon_args',
      v1: 'tool_daemon_arguments',
      v2: 'tool_daemon_arguments2',
      attribute: 'ToolDaemonArgs',
      attributeV2: 'ToolDaemonArguments',
    });
  },
};
