import { createServer, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import * as z from 'zod';
import { asError, GryphusError } from '../errors.ts';
import type { CheckStep } from '../site-check/steps.ts';
import type { Prompt, PromptRequest } from '../transport/prompt.ts';
import { listenAt } from '../util/listen-at.ts';

/**
 * Lines of JSON from the client: first the site to log in to, or to test over its open connection; then the answers,
 * where `null` gives up.
 */
const SAID = z.union([
  z.object({ login: z.string() }),
  z.object({ test: z.string() }),
  z.object({ answer: z.string().nullable() }),
]);

/** Lines of JSON from the login socket. */
export type LoginLine =
  | { readonly ask: string; readonly echo: boolean }
  | { readonly step: CheckStep }
  | { readonly done: true }
  | { readonly error: string; readonly code: string; readonly suggestions: readonly string[] };

/** Opens the connections that a login needs. */
export interface LoginTarget {
  site(name: string): Promise<{ describe(): Promise<unknown> }>;
  encourage(site: string): Promise<void>;
  /** Tests the site over its open connection. Rejects with 'needs-login' if there is none. */
  check(site: string, signal: AbortSignal): AsyncIterable<CheckStep>;
}

interface Visit {
  readonly socket: Socket;
  readonly answers: AsyncIterator<string>;
}

/**
 * Where a user logs in to a site whose connection this process keeps: a Unix socket in the 0700 directory. Questions
 * from the site are forwarded to the client at the socket; without one they remain unanswered, and the site *needs
 * login*. Answers are kept in memory only.
 */
export class LoginSocket {
  readonly #path: string;
  readonly #visits = new Map<string, Visit>();
  #end: (() => void) | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  promptFor(site: string): Prompt {
    return async (request) => {
      const visit = this.#visits.get(site);
      return visit ? askAll(visit, request) : undefined;
    };
  }

  async open(target: LoginTarget): Promise<void> {
    this.#end = await listenAt(
      createServer((socket) => void this.#receive(socket, target)),
      this.#path,
    );
  }

  close(): void {
    for (const { socket } of this.#visits.values()) socket.destroy();
    this.#end?.();
  }

  async #receive(socket: Socket, target: LoginTarget): Promise<void> {
    socket.on('error', () => undefined);
    const answers = createInterface({ input: socket })[Symbol.asyncIterator]();
    let site: string | undefined;
    try {
      const first = await answers.next();
      const said = first.done ? undefined : SAID.parse(JSON.parse(first.value));
      if (!said || 'answer' in said) return;
      if ('test' in said) {
        const gone = new AbortController();
        socket.once('close', () => gone.abort());
        for await (const step of target.check(said.test, gone.signal)) say(socket, { step });
        say(socket, { done: true });
        return;
      }
      site = said.login;
      this.#visits.set(site, { socket, answers });
      await (await target.site(site)).describe();
      await target.encourage(site);
      say(socket, { done: true });
    } catch (thrown) {
      const error = asError(thrown);
      const known = error instanceof GryphusError ? error : undefined;
      say(socket, { error: error.message, code: known?.code ?? 'internal', suggestions: known?.suggestions ?? [] });
    } finally {
      if (site !== undefined) this.#visits.delete(site);
      socket.end();
    }
  }
}

async function askAll({ socket, answers }: Visit, request: PromptRequest): Promise<readonly string[] | undefined> {
  const given: string[] = [];
  for (const [i, { text, echo }] of request.questions.entries()) {
    say(socket, { ask: i === 0 && request.instructions !== '' ? `${request.instructions}\n${text}` : text, echo });
    const next = await answers.next();
    if (next.done) return undefined;
    const said = SAID.parse(JSON.parse(next.value));
    if (!('answer' in said) || said.answer === null) return undefined;
    given.push(said.answer);
  }
  return given;
}

function say(socket: Socket, line: LoginLine): void {
  if (socket.writable) socket.write(`${JSON.stringify(line)}\n`);
}
