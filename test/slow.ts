/** `GRYPHUS_SLOW=1` runs every case of tests that walk through many similar ones; an ordinary run samples them. */
export const SLOW = process.env['GRYPHUS_SLOW'] === '1';

/** Every `n`th of many similar cases, starting with the first; all of them in a slow run. */
export function some<T>(cases: readonly T[], n: number): readonly T[] {
  return SLOW ? cases : cases.filter((_, at) => at % n === 0);
}
