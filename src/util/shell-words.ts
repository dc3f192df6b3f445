/**
 * Splits words as a POSIX shell would, honouring quotes and backslashes but no variables, commands or patterns.
 * `undefined` if a quote is not closed.
 */
export function shellWords(text: string): string[] | undefined {
  const words: string[] = [];
  const part = /\s+|'([^']*)'|"((?:[^"\\]|\\[\s\S])*)"|\\([\s\S])|([^\s'"\\]+)/y;
  let word: string | undefined;
  while (part.lastIndex < text.length) {
    const found = part.exec(text);
    if (found === null) return undefined;
    const [, single, double, escaped, plain] = found;
    const piece = single ?? double?.replace(/\\(["\\$`\n])/g, '$1') ?? escaped ?? plain;
    if (piece !== undefined) word = (word ?? '') + piece;
    else if (word !== undefined) {
      words.push(word);
      word = undefined;
    }
  }
  if (word !== undefined) words.push(word);
  return words;
}
