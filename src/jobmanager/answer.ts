import type { ByteReader } from './byte-reader.ts';

/** A complete answer of the JobManager: its lines in order, and the raw bytes that some of them announced. */
export interface Answer {
  readonly lines: readonly AnswerLine[];
  readonly status: number;
}

export interface AnswerLine {
  readonly kind: string;
  /** The text after the kind. */
  readonly rest: string;
  /** `data`: one item; `stream`: one for each file. */
  readonly bytes: readonly Buffer[];
}

/** Thrown if the other side does not speak our protocol. */
export class NotOurs extends Error {
  override readonly name = 'NotOurs';
}

const KIND = /^([a-z+-][a-z-]*)(?: (.*))?$/s;

/** Reads up to the `end` line of request `id` (protocol: jobmanager.sh). */
export async function readAnswer(reader: ByteReader, id: number): Promise<Answer> {
  const lines: AnswerLine[] = [];
  for (;;) {
    const line = await reader.line();
    const found = KIND.exec(line);
    if (!found) throw new NotOurs(line);
    const kind = found[1] ?? '';
    const rest = found[2] ?? '';
    if (kind === 'end') {
      const [ended, status] = rest.split(' ').map(Number);
      if (ended !== id) throw new NotOurs(line);
      return { lines, status: status ?? 0 };
    }
    lines.push({ kind, rest, bytes: await announced(reader, kind, rest) });
  }
}

async function announced(reader: ByteReader, kind: string, rest: string): Promise<Buffer[]> {
  if (kind === 'data') {
    const count = Number(rest.split(' ').at(-1));
    if (!Number.isSafeInteger(count) || count < 0) throw new NotOurs(rest);
    const bytes = await reader.take(count);
    await reader.take(1);
    return [bytes];
  }
  if (kind !== 'stream') return [];
  const [nonce, count] = rest.split(' ');
  const files: Buffer[] = [];
  for (let i = 0; i < Number(count); i++) files.push(await reader.until(Buffer.from(`\n${nonce}\n`)));
  return files;
}
