import * as z from 'zod';

/** A piece of a stream that is stored beside the URL where all of it will be. Offsets and sizes in bytes. */
export type Part = z.infer<typeof PART>;
export type Sent = z.infer<typeof SENT>;

const PART = z.strictObject({ name: z.string(), offset: z.number(), bytes: z.number(), sha256: z.string() });

/** What has been stored of a stream: its parts, in order and without a gap, and which run of the job wrote the last. */
export const SENT = z.strictObject({
  attempt: z.number(),
  /** Which of the versions that the job has made of the file. */
  version: z.number().default(0),
  /** Grows when parts are replaced by others, whose names must differ from those that readers know. */
  generation: z.number(),
  parts: z.array(PART),
  /** Names of parts that count no more, and are still to be removed. */
  stale: z.array(z.string()),
});

export const NOTHING_SENT: Sent = { attempt: -1, version: 0, generation: 0, parts: [], stale: [] };

/** The largest part, bytes: what is longer without an end of a line is cut. */
export const LARGEST_PART = 16 * 1024 * 1024;

/** A part smaller than a hundredth of what is there waits for more of it for so long, milliseconds. */
const PATIENCE_MS = 300_000;
const SHARE = 100;

export function endOf(parts: readonly Part[]): number {
  const last = parts.at(-1);
  return last === undefined ? 0 : last.offset + last.bytes;
}

/** What stays if another run, or the same again, writes from `base` on. */
export function startOver(sent: Sent, of: Pick<Sent, 'attempt' | 'version'>, base: number): Sent {
  const stays = ({ offset, bytes }: Part) => offset + bytes <= base;
  const gone = sent.parts.filter((part) => !stays(part)).map(({ name }) => name);
  return { ...of, generation: sent.generation + 1, parts: sent.parts.filter(stays), stale: [...sent.stale, ...gone] };
}

/**
 * How many of the bytes that follow the parts make the next one: whole lines, so that a reader never sees half a record.
 * 0: wait for more. `waitedMs`: since the last part was stored. Parts grow with the stream, so their number grows with
 * the logarithm of its size, and with its time in steps of `PATIENCE_MS`.
 */
export function nextPart(fresh: Buffer, parts: readonly Part[], waitedMs: number): number {
  const lines = fresh.lastIndexOf(0x0a) + 1;
  if (fresh.length >= LARGEST_PART) return lines === 0 ? LARGEST_PART : lines;
  if (lines * SHARE < endOf(parts) && waitedMs < PATIENCE_MS) return 0;
  return lines;
}

/** A URL beside another one: the same with something appended to its path. */
export function besideUrl(url: string, suffix: string): string {
  const end = url.search(/[?#]/);
  return end < 0 ? `${url}${suffix}` : `${url.slice(0, end)}${suffix}${url.slice(end)}`;
}

/** The suffix of the URL of the list of parts. */
export const LIST = '.parts';

export function suffixOf(generation: number, offset: number): string {
  return `.part-${generation}-${offset}`;
}

/**
 * The list of parts, which readers fetch first: a line for each, in order, `OFFSET BYTES SHA256 SUFFIX`; the part is at the
 * URL of the whole with the suffix appended to its path.
 */
export function listOf(parts: readonly Part[]): string {
  return parts.map(({ name, offset, bytes, sha256 }) => `${offset} ${bytes} ${sha256} ${name}\n`).join('');
}
