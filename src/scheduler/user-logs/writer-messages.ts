import * as z from 'zod';
import { count, maybe, type Read, text } from '../../util/schema.ts';
import { PIECE } from './append-once.ts';

/** A request to the writer process. */
export const ASK = z.discriminatedUnion('does', [
  z.strictObject({ id: count, does: z.literal('append'), ...PIECE.shape }),
  z.strictObject({ id: count, does: z.literal('size'), path: text }),
]);
export type WriterAsk = Read<typeof ASK>;

export const ANSWER = z.strictObject({ id: count, size: maybe(count), error: maybe(text) });
export type WriterAnswer = Read<typeof ANSWER>;
