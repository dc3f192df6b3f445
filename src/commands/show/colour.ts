/** Colours of a terminal (ECMA-48, "select graphic rendition"). */
const CODES = { red: 31, green: 32, yellow: 33, bold: 1 } as const;

/**
 * Whether this stream is a terminal that has colours and its user wants them: $NO_COLOR (no-color.org) turns them off
 * whatever its value, if it is not empty.
 */
export function hasColours(stream: { readonly isTTY?: boolean }, env: NodeJS.ProcessEnv = process.env): boolean {
  const { NO_COLOR = '', TERM = '' } = env;
  return stream.isTTY === true && NO_COLOR === '' && TERM !== '' && TERM !== 'dumb';
}

/** The text in this colour, if `on`. */
export function paint(text: string, colour: keyof typeof CODES, on: boolean): string {
  return on && text !== '' ? `\u001b[${CODES[colour]}m${text}\u001b[0m` : text;
}
