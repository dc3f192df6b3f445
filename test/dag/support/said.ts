import type { Command } from '../../../src/dag/language/commands.ts';

const NEWLINE = '\x1f';
const NO_CODE = 2_147_483_647;

function flag(value: boolean): string {
  return value ? 'T' : 'F';
}

function bytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

function names(list: readonly string[]): string {
  return [...new Set(list)]
    .sort(bytes)
    .map((name) => `${name} `)
    .join('');
}

/** A command, printed as HTCondor's DagParser prints its own (`BaseDagCommand::GetDetails`). */
export function said(command: Command): string {
  switch (command.cmd) {
    case 'node': {
      const { type, name, submit, inline, dir = '', noop, done } = command;
      const text = inline === undefined ? 'NONE' : inline.replaceAll('\n', NEWLINE);
      return `${type} > ${name} ${inline === undefined ? submit : 'INLINE'} {${text}} ${dir} ${flag(noop)} ${flag(done)}`;
    }
    case 'splice':
      return `SPLICE > ${command.name} ${command.file} ${command.dir ?? ''}`;
    case 'description':
      return `SUBMIT_DESCRIPTION > ${command.name} {${command.text.replaceAll('\n', NEWLINE)}}`;
    case 'include':
      return `INCLUDE > ${command.file}`;
    case 'depend':
      return `PARENT > ${command.weak ? 'WEAK ' : ''}[ ${names(command.parents)}] --> [ ${names(command.children)}]`;
    case 'script': {
      const { defer, debug, command: line } = command.script;
      const deferred = defer === undefined || defer.status === -1 ? '0 -1' : `${defer.seconds} ${defer.status}`;
      return `SCRIPT > ${command.node} ${command.type} '${line}' ${deferred} ${debug?.file ?? ''} ${debug?.stream ?? 'NONE'}`;
    }
    case 'retry':
      return `RETRY > ${command.node} ${command.max} ${command.unlessExit ?? 0}`;
    case 'abort':
      return `ABORT_DAG_ON > ${command.node} ${command.status} ${command.code ?? NO_CODE}`;
    case 'vars': {
      const place = command.place === undefined ? '' : ` ${command.place.toUpperCase()}`;
      return `VARS > ${command.node}${place}${command.pairs.map(({ key, value }) => ` [${key}=${value}]`).join('')}`;
    }
    case 'priority':
      return `PRIORITY > ${command.node} ${command.value}`;
    case 'pre-skip':
      return `PRE_SKIP > ${command.node} ${command.status}`;
    case 'tolerance': {
      const { limit, percent, mode } = command.tolerance;
      return `TOLERANCE > ${command.node} ${limit} ${flag(percent)} ${mode?.toUpperCase() ?? 'AUTO'}`;
    }
    case 'done':
      return `DONE > ${command.node}`;
    case 'category':
      return `CATEGORY > ${command.category} ${command.node}`;
    case 'maxjobs':
      return `MAXJOBS > ${command.category} ${command.limit}`;
    case 'save-point':
      return `SAVE_POINT_FILE > ${command.node} ${command.file}`;
    case 'config':
      return `CONFIG > ${command.file}`;
    case 'dot': {
      const { file, update, overwrite, include = '' } = command.dot;
      return `DOT > ${file} ${include} ${flag(update)} ${flag(overwrite)}`;
    }
    case 'node-status': {
      const { file, minUpdate, alwaysUpdate } = command.status;
      return `NODE_STATUS_FILE > ${file} ${minUpdate} ${flag(alwaysUpdate)}`;
    }
    case 'jobstate':
      return `JOBSTATE_LOG > ${command.file}`;
    case 'set-attr':
      return `SET_JOB_ATTR > ${command.line}`;
    case 'env':
      return command.action === 'GET'
        ? `ENV > GET ${command.names.join(',')}`
        : `ENV > SET ${command.set.map(([name, value]) => `${name}=${value}`).join(';')}`;
    case 'reject':
      return 'REJECT > x.dag';
    case 'connect':
      return `CONNECT > [${command.from}]--[${command.to}]`;
    case 'pin':
      return `PIN_${command.side.toUpperCase()} > ${command.node} ${command.pin} ${command.side.toUpperCase()}`;
  }
}
