/** Text that is not a ClassAd expression (or ad). `message` names the place and what was expected there. */
export class ClassAdSyntaxError extends Error {
  override readonly name = 'ClassAdSyntaxError';
  /** From 1. */
  readonly line: number;
  /** From 1, in characters. */
  readonly column: number;
  /** What the parser would have accepted there. */
  readonly expected: string;

  constructor(text: string, offset: number, expected: string, found: string) {
    const before = text.slice(0, offset);
    const line = before.split('\n').length;
    const column = offset - (before.lastIndexOf('\n') + 1) + 1;
    super(`line ${line}, column ${column}: expected ${expected}, found ${found}`);
    this.line = line;
    this.column = column;
    this.expected = expected;
  }
}
