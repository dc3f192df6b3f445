import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import * as z from 'zod';
import { GryphusError } from '../errors.ts';
import type { Channel, ListenPlace, Transport } from '../transport/contract.ts';
import { shellQuote } from '../util/shell-quote.ts';

/** A program on the login node that lets the cluster's nodes use the agent's connection. */
export interface LoginRelay {
  readonly port: number;
  /** Names and addresses of the login node. */
  readonly hosts: readonly string[];
  /** `ok`, or why the agent's own connection could not be reached. */
  readonly target: string;
  /** For each probe: `ok`, or why nothing answered there. */
  readonly probes: readonly string[];
  readonly closed: Promise<void>;
  close(): void;
}

const ANSWER = z.object({
  port: z.number(),
  hosts: z.array(z.string()),
  target: z.string(),
  probes: z.array(z.string()),
});
const PATIENCE_MS = 30_000;

/**
 * Starts the relay with the Node at `node` there; it ends with the connection. 'missing-program' if that Node cannot
 * run.
 */
export async function startLoginRelay(
  transport: Pick<Transport, 'open' | 'label'>,
  node: string,
  target: ListenPlace,
  probes: readonly { readonly host: string; readonly port: number }[],
): Promise<LoginRelay> {
  const text = await readFile(new URL('login-relay.mjs', import.meta.url), 'utf8');
  const to = target.kind === 'socket' ? { path: target.path } : { port: target.port, host: '127.0.0.1' };
  const words = [node, '--input-type=module', '-e', text, JSON.stringify({ target: to, probes })].map(shellQuote);
  const channel = await transport.open(`exec ${words.join(' ')}`);
  try {
    return { ...(await answerOf(channel)), closed: channel.closed.then(() => undefined), close: () => channel.kill() };
  } catch (cause) {
    channel.kill();
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new GryphusError('missing-program', `Our Node does not run on ${transport.label}: ${why}.`, { cause });
  }
}

async function answerOf(channel: Channel): Promise<z.infer<typeof ANSWER>> {
  let errors = '';
  channel.stderr.on('data', (bytes: Buffer) => {
    errors = `${errors}${bytes.toString('utf8')}`.slice(0, 1000);
  });
  channel.stderr.on('error', () => undefined);
  channel.stdin.on('error', () => undefined);
  channel.stdout.on('error', () => undefined);
  let timer: NodeJS.Timeout | undefined;
  try {
    return await Promise.race([
      new Promise<z.infer<typeof ANSWER>>((resolve, reject) => {
        const lines = createInterface({ input: channel.stdout });
        lines.once('line', (line) => {
          try {
            resolve(ANSWER.parse(JSON.parse(line)));
          } catch {
            reject(new Error(`it said ${line.slice(0, 200)}`));
          }
        });
        lines.once('close', () => reject(new Error(errors.trim().split('\n')[0] || 'it ended')));
      }),
      new Promise<never>((_resolve, reject) => {
        timer = setTimeout(() => reject(new Error(`no answer within ${PATIENCE_MS / 1000} s`)), PATIENCE_MS);
      }),
    ]);
  } finally {
    clearTimeout(timer);
  }
}
