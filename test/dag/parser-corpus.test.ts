import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { eachCommand } from '../../src/dag/language/parse.ts';
import { DEFINITIONS, FOR_THE_MANAGER, MODIFIERS } from '../../src/dag/language/syntax.ts';
import { said } from './support/said.ts';

/**
 * Random DAG texts, and what HTCondor's own parser reported for each: its commands with their lines, then its errors.
 */
interface Answered {
  readonly text: string;
  readonly commands: readonly string[];
  readonly errors: readonly string[];
}

const ALL = new Set([...DEFINITIONS, ...MODIFIERS, ...FOR_THE_MANAGER]);
const ANSWERS = readFileSync(join(import.meta.dirname, '../fixtures/dag-parser.jsonl'), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Answered);

function read(text: string): { commands: string[]; errors: string[] } {
  const commands: string[] = [];
  const errors: string[] = [];
  eachCommand(
    text,
    'x.dag',
    ALL,
    ({ line, command, message }) => errors.push(`${line} ! ${command ?? '?'}: ${message}`),
    (command, line) => commands.push(`${line} ${said(command)}`),
  );
  return { commands, errors };
}

describe("the parser against HTCondor's own", () => {
  it('has answers to look at', () => {
    expect(ANSWERS.length).toBeGreaterThan(500);
  });

  it('reads the same commands and finds the same errors, in the same lines, with the same words', () => {
    const different = ANSWERS.flatMap(({ text, ...theirs }) => {
      const ours = read(text);
      return JSON.stringify(ours) === JSON.stringify(theirs) ? [] : [{ text, theirs, ours }];
    });
    expect(different.slice(0, 3)).toEqual([]);
  });
});
