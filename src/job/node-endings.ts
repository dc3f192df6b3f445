/** How a node of a parallel job ended. */
export type NodeEnding = {
  readonly number: number;
  /** Unix seconds. */
  readonly endedAt: number;
  /** Processor time in seconds. */
  readonly user: number;
  readonly system: number;
} & ({ readonly exitCode: number } | { readonly signal: number });

/** The attribute in which they are, in the order in which they ended. */
export const NODE_ENDINGS = 'GryphusNodeEndings';

/** As text: `0 exit 7 1700000000.5 0.1 0.02; 1 signal 9 …`. */
export function nodeEndings(endings: readonly NodeEnding[]): string {
  return endings
    .map((one) => {
      const how = 'exitCode' in one ? `exit ${one.exitCode}` : `signal ${one.signal}`;
      return `${one.number} ${how} ${one.endedAt} ${one.user} ${one.system}`;
    })
    .join('; ');
}

/** What `nodeEndings` wrote; what cannot be read is left out. */
export function parseNodeEndings(text: string): NodeEnding[] {
  return text.split('; ').flatMap((one): NodeEnding[] => {
    const found = /^(\d+) (exit|signal) (-?\d+) (\S+) (\S+) (\S+)$/.exec(one);
    if (!found) return [];
    const [number, , code, endedAt, user, system] = found.slice(1).map(Number);
    if (number === undefined || code === undefined) return [];
    const times = { number, endedAt: endedAt ?? 0, user: user ?? 0, system: system ?? 0 };
    return [found[2] === 'exit' ? { ...times, exitCode: code } : { ...times, signal: code }];
  });
}
