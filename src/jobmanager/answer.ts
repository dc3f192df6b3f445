import { LONGEST_RECORD } from '../site/chirp.ts';
import { type ByteReader, TooLong } from './byte-reader.ts';

/** A complete answer of the JobManager: its lines in order, and the raw bytes that some of them announced. */
export interface SiteAnswer {
  readonly lines: readonly AnswerLine[];
  readonly status: number;
}

export interface AnswerLine {
  readonly kind: string;
  /** The text after the kind. */
  readonly rest: string;
  /** Of a `data`, `asked` or `pieces` line: what it announced. */
  readonly bytes: Buffer | undefined;
}

/** Takes the files of an answer one by one as they arrive, since together they may be larger than memory. */
export interface FileSink {
  /** A new answer begins; an earlier one may have broken off. */
  begin(): void;
  /** Whether this line is for the sink alone. */
  line(kind: string, rest: string): boolean;
  /** The content of file number `i` of the current `stream` line. */
  file(i: number, bytes: Buffer): Promise<void>;
}

/** Thrown if the other side does not speak our protocol. */
export class NotOurs extends Error {
  override readonly name = 'NotOurs';
}

/** The most bytes of one stream in one answer. */
export const MOST_DATA = 256 * 1024;
/** The most bytes of all files that grow in one answer. */
export const MOST_PIECES = 32 << 20;
/** The most bytes of one file in a `stream`: larger ones are fetched by themselves. */
const MOST_FILE = 1 << 20;
/** The most such files. */
const MOST_FILES = 1_000_000;
/** The most memory for what is kept of one answer: half a million lines. Each costs this much more than its text. */
const MOST_KEPT = 128 << 20;
const PER_LINE = 200;

/** Lines that announce bytes, and the most of them. */
const LONGEST: ReadonlyMap<string, number> = new Map([
  ['data', MOST_DATA],
  ['pieces', MOST_PIECES],
  ['asked', LONGEST_RECORD],
]);

const KIND = /^([a-z+-][a-z-]*)(?: (.*))?$/s;

/**
 * Reads up to the `end` line of request `id` (protocol: jobmanager.sh). Rejects with TooLong if a site sends more than
 * any honest one would, with NotOurs if it sends something else.
 */
export async function readAnswer(reader: ByteReader, id: number, sink?: FileSink): Promise<SiteAnswer> {
  const lines: AnswerLine[] = [];
  let kept = 0;
  /** Since the last file of the sink. */
  let announced = 0;
  let files = 0;
  sink?.begin();
  for (;;) {
    const line = await reader.line();
    const found = KIND.exec(line);
    if (!found) throw new NotOurs(line.slice(0, 1000));
    const kind = found[1] ?? '';
    const rest = found[2] ?? '';
    if (kind === 'end') {
      const [ended, status] = rest.split(' ').map(Number);
      if (ended !== id) throw new NotOurs(line);
      return { lines, status: status ?? 0 };
    }
    if (kind === 'stream') {
      const [nonce = '', count] = rest.split(' ');
      const mark = Buffer.from(`\n${nonce}\n`);
      for (let i = 0; i < Number(count); i++) {
        if (++files > MOST_FILES) throw new TooLong(`more than ${MOST_FILES} files`);
        const bytes = await reader.until(mark, MOST_FILE);
        await sink?.file(i, bytes);
      }
      announced = 0;
      continue;
    }
    const most = LONGEST.get(kind);
    const bytes = most === undefined ? undefined : await readData(reader, rest, most);
    const cost = line.length + PER_LINE + (bytes?.length ?? 0);
    if (sink?.line(kind, rest)) announced += cost;
    else {
      kept += cost;
      lines.push({ kind, rest, bytes });
    }
    if (kept + announced > MOST_KEPT) throw new TooLong(`more than ${MOST_KEPT >> 20} MB of text`);
  }
}

async function readData(reader: ByteReader, rest: string, most: number): Promise<Buffer> {
  const count = Number(rest.split(' ').at(-1));
  if (!Number.isSafeInteger(count) || count < 0) throw new NotOurs(rest.slice(0, 1000));
  if (count > most) throw new TooLong(`${count} bytes at once`);
  const bytes = await reader.take(count);
  await reader.take(1);
  return bytes;
}
