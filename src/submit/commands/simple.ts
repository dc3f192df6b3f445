import { booleanOf, integerOf } from '../calculate.ts';
import { CATALOGUE, type CommandKind, type SubmitCommand } from '../catalogue.ts';
import type { JobMaker, Step } from '../maker.ts';
import { stripQuotes, tokens } from '../text.ts';

interface Command extends SubmitCommand {
  readonly attribute: string;
  readonly kind: CommandKind;
}

export const isSimple = (command: SubmitCommand): command is Command =>
  command.kind !== undefined && command.attribute !== undefined;

function set(job: JobMaker, { name, attribute, kind }: Command, text: string): void {
  switch (kind) {
    case 'expr':
      return job.setExpr(attribute, text, name);
    case 'string':
      return job.setString(attribute, text);
    case 'unquoted':
      return job.setString(attribute, stripQuotes(text));
    case 'list':
      return job.setString(attribute, tokens(text).join(','));
    case 'path':
    case 'unquoted-path': {
      const path = kind === 'path' ? text : stripQuotes(text);
      return job.setString(attribute, path === '' ? '' : job.fullPath(path));
    }
    case 'bool': {
      const value = booleanOf(text);
      if (value !== undefined) return job.setBool(attribute, value);
      throw job.fault(name, `${name}=${text} is invalid, must eval to a boolean.`, ['Write true or false.'], attribute);
    }
    case 'int':
    case 'natural': {
      const value = integerOf(text);
      if (value !== undefined && (kind === 'int' || value >= 0n)) return job.setInt(attribute, value);
      const what = value === undefined ? 'an integer' : 'a non-negative integer';
      throw job.fault(name, `${name}=${text} is invalid, must eval to ${what}.`, [], attribute);
    }
  }
}

export function setSimple(job: JobMaker, command: Command): void {
  const text = job.param(command.name, command.attribute) ?? (command.alias ? job.param(command.alias) : undefined);
  if (text !== undefined) set(job, command, text);
}

/** Commands that are put into the ad unchanged; those of clouds have their place among the grid's. */
export const simple: readonly Step[] = CATALOGUE.filter(isSimple)
  .filter(({ fate }) => fate !== 'not-run')
  .map((command) => ({ name: command.name, run: (job) => setSimple(job, command) }));
