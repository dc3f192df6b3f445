import { Complaint } from './problem.ts';

/**
 * The lines of a DAG file. Comments begin with `#` or `//` and, like empty lines, are skipped even between the parts of
 * a continued line; a line that ends in `\` continues on the next one (manual, "DAG file comments, continuation").
 */
export class LineReader {
  private readonly text: string;
  private at = 0;
  /** The number of the last line read, from 1. */
  line = 0;

  constructor(text: string) {
    this.text = text;
  }

  /** The next line that is neither empty nor a comment, trimmed but otherwise as written. */
  raw(): string | undefined {
    while (this.at < this.text.length) {
      let end = this.text.indexOf('\n', this.at);
      if (end < 0) end = this.text.length;
      const line = this.text.slice(this.at, end).trim();
      this.at = end + 1;
      this.line++;
      if (line !== '' && line[0] !== '#' && !line.startsWith('//')) return line;
    }
    return undefined;
  }

  /** The next line with its continuations. Throws a Complaint if the file ends first. */
  next(): string | undefined {
    let line = this.raw();
    if (line === undefined || !line.endsWith('\\')) return line;
    let whole = '';
    while (line?.endsWith('\\')) {
      whole += `${line.slice(0, -1)} `;
      line = this.raw();
    }
    if (line === undefined) throw new Complaint('The file ends in a continued line', 'Remove the last \\.');
    return (whole + line).trimStart();
  }
}
