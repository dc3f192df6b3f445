import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { Flags } from '@oclif/core';
import type { ClassAd } from '../../classad/api.ts';
import { asError, GryphusError } from '../../errors.ts';
import { reasonOf } from '../../util/plain-text.ts';
import { GryphusCommand, Out, prose, word } from '../command.ts';

export class ClassadEval extends GryphusCommand {
  static override summary = 'Evaluate a ClassAd expression.';
  static override description =
    prose(`The expression sees the attributes of --ad as its own (MY) and those of --target as TARGET. An ad is a record
[ A = 1; B = A + 1 ] or lines Name = expression, as \`q --long\` prints them.

With --jsonl, records {"expr", "ad", "target", "kind"} are read from standard input, and one line with "result" (as
HTCondor's tools evaluate) and "result_new" (the strict language) is written for each; kind is eval, unparse or match. A line that is not such a record is answered
with "error", and the exit status is then 65.`);
  static override examples = [
    `<%= config.bin %> classad eval 'strcat("a", 1 + 2)'`,
    '<%= config.bin %> q 12.3 -l >job.ad; <%= config.bin %> classad eval --old --ad job.ad Requirements',
  ];
  static override args = { expression: word('the expression') };
  static override flags = {
    ad: Flags.string({ helpValue: '<file>', summary: 'The ad in which to evaluate; - for standard input.' }),
    target: Flags.string({ helpValue: '<file>', summary: 'The other ad of a match.' }),
    old: Flags.boolean({ summary: "Evaluate as HTCondor's tools and daemons do, not by the strict language." }),
    jsonl: Flags.boolean({ summary: 'Answer records from standard input.' }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ClassadEval);
    if (flags.jsonl) return this.#answerAll();
    if (args.expression === undefined)
      throw new GryphusError('usage', 'Give an expression.', { suggestions: ['See the command with --help.'] });
    const { ClassAdSyntaxError, EvalFailed, parseExpr, printValue, tryEvaluate } = await import('../../classad/api.ts');
    const mode = flags.old ? 'old' : 'new';
    const my = flags.ad === undefined ? undefined : await readAd(flags.ad, mode);
    const target = flags.target === undefined ? undefined : await readAd(flags.target, mode);
    let value: ReturnType<typeof tryEvaluate>;
    try {
      value = tryEvaluate(parseExpr(args.expression, mode), { my, target, mode });
    } catch (thrown) {
      if (!(thrown instanceof ClassAdSyntaxError)) throw thrown;
      throw new GryphusError('bad-input', thrown.message, { cause: thrown });
    }
    if (value instanceof EvalFailed)
      throw new GryphusError('bad-input', 'The expression nests too deeply or takes too long to evaluate.');
    process.stdout.write(`${printValue(value, mode)}\n`);
  }

  async #answerAll(): Promise<void> {
    const { answer, readQuestion } = await import('../classad-answer.ts');
    const out = new Out();
    let line = 0;
    let bad: unknown;
    for await (const text of createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY })) {
      line++;
      if (text.trim() === '') continue;
      try {
        const question = readQuestion(text, line);
        out.line(JSON.stringify({ result: answer(question, 'old'), result_new: answer(question, 'new') }));
      } catch (thrown) {
        // One line out for each line in: an invalid question must not cost the others their answers.
        out.line(JSON.stringify({ error: asError(thrown).message }));
        bad ??= thrown;
      }
      await out.breathe();
    }
    await out.flush();
    if (bad !== undefined) throw bad;
  }
}

async function readAd(file: string, mode: 'old' | 'new'): Promise<ClassAd> {
  const { ClassAdSyntaxError, parseAd, parseOldAd } = await import('../../classad/api.ts');
  let text: string;
  try {
    text = readFileSync(file === '-' ? 0 : file, 'utf8');
  } catch (cause) {
    throw new GryphusError('input-missing', `Cannot read the ad ${JSON.stringify(file)}: ${reasonOf(cause)}.`, {
      cause,
    });
  }
  try {
    return text.trimStart().startsWith('[') ? parseAd(text, mode) : parseOldAd(text);
  } catch (thrown) {
    if (!(thrown instanceof ClassAdSyntaxError)) throw thrown;
    throw new GryphusError('bad-input', `${file}: ${thrown.message}`, { cause: thrown });
  }
}
