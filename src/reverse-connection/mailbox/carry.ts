import { readFile } from 'node:fs/promises';
import { GryphusError } from '../../errors.ts';
import type { Transport } from '../../transport/contract.ts';
import { shellQuote } from '../../util/shell-quote.ts';
import type { FoundLetter, MailboxRequest } from './mailbox-store.ts';

/** About how many bytes one answer carries. */
const MOST = 8 * 1024 * 1024;
const PATIENCE_MS = 120_000;

let program: Promise<string> | undefined;

/** Runs rounds with the mailboxes in the site's directory `root`, over the agent's own connection. */
export function mailCarrier(
  transport: Pick<Transport, 'run' | 'label'>,
  root: string,
): (request: MailboxRequest) => Promise<readonly FoundLetter[]> {
  return async (request) => {
    program ??= readFile(new URL('mailbox-store.sh', import.meta.url), 'utf8');
    const command = `/bin/sh -c ${shellQuote(await program)} mailbox-store ${shellQuote(root)} ${MOST}`;
    const { code, stdout, stderr } = await transport.run(command, { stdin: written(request), timeoutMs: PATIENCE_MS });
    if (code === 74) {
      throw new GryphusError('disk-full', `The mailboxes in ${root} on ${transport.label} cannot be written.`);
    }
    if (code !== 0) {
      const message = stderr.toString('utf8').trim().slice(0, 200);
      throw new GryphusError('protocol-error', `The mailboxes on ${transport.label} cannot be read: ${message}.`);
    }
    return parseAnswer(stdout, transport.label);
  };
}

function written({ put, del, drop, inventory }: MailboxRequest): Buffer {
  return Buffer.concat([
    Buffer.from(drop.map((worker) => `drop ${worker}\n`).join('')),
    ...put.flatMap(({ worker, name, bytes }) => [Buffer.from(`put ${worker} ${name} ${bytes.length}\n`), bytes]),
    Buffer.from(
      `${del.map(({ worker, name }) => `del ${worker} ${name}\n`).join('')}${inventory ? 'inventory' : 'take'}\n`,
    ),
  ]);
}

function parseAnswer(answer: Buffer, label: string): FoundLetter[] {
  const found: FoundLetter[] = [];
  for (let at = 0; ; ) {
    const end = answer.indexOf(10, at);
    const line = answer.toString('utf8', at, end);
    if (line === 'end') return found;
    const [, worker, name, size] = /^letter ([^/ ]+)\/([^/ ]+) (\d+)$/.exec(line) ?? [];
    if (end === -1 || worker === undefined || name === undefined) {
      throw new GryphusError('protocol-error', `The mailboxes on ${label} gave an incomplete answer.`);
    }
    at = end + 1 + Number(size);
    found.push({ worker, name, bytes: answer.subarray(end + 1, at) });
  }
}
