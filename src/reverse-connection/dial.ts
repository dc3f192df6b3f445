import type { Duplex } from 'node:stream';
import { asError, GryphusError } from '../errors.ts';
import { type Home, type Way, waysNow } from './home.ts';
import { mailboxDuplex } from './mailbox/worker-end.ts';
import { reach } from './reach.ts';
import { greetHome } from './secure.ts';

export interface DialOptions {
  /** How long to wait for an answer on each way; ten times as long for a mailbox. Default 20 s. */
  readonly patienceMs?: number;
  readonly onFailed?: (way: Way, why: Error) => void;
}

/**
 * Links with the agent by the first way that works. Rejects with 'site-unreachable' if none does now: an agent that no
 * longer knows the token closes the link silently, just as a broken way does.
 */
export async function dialHome(home: Home, { patienceMs = 20_000, onFailed }: DialOptions = {}): Promise<Duplex> {
  const failures: string[] = [];
  const key = Buffer.from(home.key, 'hex');
  for (const way of waysNow(home)) {
    const patience = way.kind === 'mailbox' ? patienceMs * 10 : patienceMs;
    try {
      const raw = await open(way, home.worker, patience);
      return await greetHome(raw, { worker: home.worker, key, patienceMs: patience });
    } catch (thrown) {
      const error = asError(thrown);
      onFailed?.(way, error);
      failures.push(`${wayText(way)}: ${error.message}`);
    }
  }
  const why = failures.length === 0 ? 'no reverse connection is known' : failures.join('; ');
  throw new GryphusError('site-unreachable', `The agent cannot be reached (${why}).`);
}

export function wayText(way: Way): string {
  switch (way.kind) {
    case 'socket':
      return way.path;
    case 'port':
      return `${way.host}:${way.port}`;
    case 'mailbox':
      return `the mailbox ${way.directory}`;
  }
}

async function open(way: Way, worker: string, patienceMs: number): Promise<Duplex> {
  if (way.kind === 'mailbox') return mailboxDuplex(way.directory, worker);
  return reach(way.kind === 'socket' ? { path: way.path } : { port: way.port, host: way.host }, patienceMs);
}
