/**
 * Unix seconds as the machine had them when this was called, and what has passed since by a clock that nobody can set: a
 * time that was told before, as the end of an allocation, neither comes sooner nor goes away.
 */
export function steadyClock(): () => number {
  const ahead = Date.now() - performance.now();
  return () => (ahead + performance.now()) / 1000;
}
