type Defined<T> = { [K in keyof T]: Exclude<T[K], undefined> };

/** Without the keys whose values are undefined. */
export function defined<T extends object>(some: T): Defined<T> {
  return Object.fromEntries(Object.entries(some).filter(([, value]) => value !== undefined)) as Defined<T>;
}
