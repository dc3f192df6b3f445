import * as z from 'zod';

/** The read-only type of what a schema reads. */
export type Read<S extends z.ZodType> = Immutable<z.infer<S>>;

type Immutable<T> = T extends string | number | boolean | null | undefined
  ? T
  : { readonly [K in keyof T]: Immutable<T[K]> };

/** A key that may be absent but is never `undefined`. */
export const maybe = z.exactOptional;
export const text = z.string();
export const texts = z.array(text);
export const flag = z.boolean();
export const count = z.int().nonnegative();
export const amount = z.number().nonnegative();
/** Unix seconds, up to the year 9999. */
export const moment = amount.max(253_402_300_799);
/* z.record would leave out a name `__proto__`. */
export const textsByName = z.custom<Readonly<Record<string, string>>>(
  (value) => isRecord(value) && Object.values(value).every((one) => typeof one === 'string'),
  'not a record of strings',
);

export const amounts = z.custom<Readonly<Record<string, number>>>(
  (value) => isRecord(value) && Object.values(value).every((one) => typeof one === 'number' && one >= 0),
  'not a record of amounts',
);

function isRecord(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
