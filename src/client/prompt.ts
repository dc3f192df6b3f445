import type { Prompt } from '../transport/prompt.ts';
import type { AskUser } from './types.ts';

/** Puts the questions of a log-in to the user one by one; without `ask`, there is no one to ask. */
export function promptOf(ask: AskUser | undefined): Prompt {
  return async ({ questions, instructions }) => {
    if (!ask) return undefined;
    const answers: string[] = [];
    for (const { text, echo } of questions) {
      const answer = await ask({ text: instructions === '' ? text : `${instructions}\n${text}`, echo });
      if (answer === undefined) return undefined;
      answers.push(answer);
    }
    return answers;
  };
}
