import { readFileSync } from 'node:fs';
import { GryphusError } from '../../errors.ts';
import { parsePrintFormat, type PrintFormat } from './parse.ts';

/** Reads a print format file; `-` means standard input. */
export async function loadPrintFormat(file: string): Promise<PrintFormat> {
  const { ClassAdSyntaxError, parseExpr } = await import('../../classad/api.ts');
  const parses = (text: string): boolean => {
    try {
      parseExpr(text);
      return true;
    } catch (thrown) {
      if (!(thrown instanceof ClassAdSyntaxError)) throw thrown;
      return false;
    }
  };
  return parsePrintFormat(textOf(file), file, parses);
}

function textOf(file: string): string {
  try {
    return readFileSync(file === '-' ? 0 : file, 'utf8');
  } catch (cause) {
    throw new GryphusError('input-missing', `Cannot read ${JSON.stringify(file)}: ${(cause as Error).message}.`, {
      cause,
      suggestions: ['It is a file with a SELECT line and a line for each column.'],
    });
  }
}
