import { chmodSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { shellWords } from '../util/shell-quote.ts';
import type { Prompt, PromptRequest } from './prompt.ts';

/** The program to put into SSH_ASKPASS, and how to stop serving it. */
export interface Askpass {
  readonly program: string;
  close(): void;
}

/** Runs in the program that ssh starts: sends the question through a socket and prints the answer. */
const CLIENT = `
const [socket, question] = process.argv.slice(1);
let answer = '';
require('net').connect(socket, function () { this.write(JSON.stringify(question) + '\\n'); })
  .on('data', (bytes) => { answer += bytes; })
  .on('error', () => process.exit(1))
  .on('close', () => { if (answer === '') process.exit(1); process.stdout.write(answer); });
`;

/**
 * Sets up a program in a private directory that answers ssh's questions through `prompt`; answers are never written to
 * disk.
 */
export async function serveAskpass(dir: string, site: string, prompt: Prompt): Promise<Askpass> {
  const socket = join(dir, 'ask');
  const server = createServer((connection) => {
    let text = '';
    connection.on('error', () => undefined);
    connection.on('data', (bytes) => {
      text += bytes.toString('utf8');
      if (!text.endsWith('\n')) return;
      const question = String(JSON.parse(text));
      prompt({ site, kind: kindOf(question), instructions: '', questions: [{ text: question, echo: false }] }).then(
        (answers) => connection.end(answers?.[0] === undefined ? '' : `${answers[0]}\n`),
        () => connection.end(),
      );
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(socket, resolve);
  });
  chmodSync(socket, 0o600);
  const program = join(dir, 'askpass');
  writeFileSync(program, `#!/bin/sh\nexec ${shellWords([process.execPath, '-e', CLIENT, socket])} "$1"\n`, {
    mode: 0o700,
  });
  return { program, close: () => void server.close() };
}

/**
 * Keeps the passphrases that the user typed, in memory only. A later connection that asks the same question gets the
 * stored answer; if one connection asks twice, the answer was wrong and the user is asked again.
 */
export class Passphrases {
  readonly #typed = new Map<string, readonly string[]>();

  /** The prompt for one connection. */
  before(prompt: Prompt): Prompt {
    const asked = new Set<string>();
    return async (request) => {
      const question = request.questions[0]?.text ?? '';
      if (request.kind !== 'passphrase') return await prompt(request);
      const known = asked.has(question) ? undefined : this.#typed.get(question);
      asked.add(question);
      const answers = known ?? (await prompt(request));
      if (answers !== undefined) this.#typed.set(question, answers);
      return answers;
    };
  }
}

function kindOf(question: string): PromptRequest['kind'] {
  // ssh begins a server's own question with its name in parentheses; an answer to one must not be kept for others.
  if (/^[^(].*passphrase/i.test(question)) return 'passphrase';
  return /^[^(].*'s password:/i.test(question) ? 'password' : 'keyboard-interactive';
}
