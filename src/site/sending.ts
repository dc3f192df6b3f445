import * as z from 'zod';
import { count, moment, text } from '../util/schema.ts';

/** Content on its way to a site, or a result on its way home. */
export const sending = z.strictObject({
  /** The path at home; for a result, its name and its job. */
  path: text,
  bytes: count,
  done: count,
  /** Bytes that were already there at the start. */
  resumed: count,
  /** When it began, in Unix milliseconds. */
  since: moment,
});
