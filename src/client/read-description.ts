import { GryphusError } from '../errors.ts';
import { boundedText, MOST_TEXT, tooLong, UnreadableText } from '../util/bounded-text.ts';
import { reasonOf } from '../util/plain-text.ts';

const REMEDY = 'A submit description is text; put what its jobs read into separate files.';

/**
 * The text of a submit file, or of standard input (`-`). Rejects with 'input-missing', or 'bad-input' if it is endless.
 */
export async function readDescription(file: string): Promise<string> {
  if (file === '-') return readStandardInput();
  try {
    return boundedText(file, MOST_TEXT);
  } catch (cause) {
    if (cause instanceof UnreadableText) {
      throw new GryphusError('bad-input', `The submit file ${cause.message}.`, { cause, suggestions: [REMEDY] });
    }
    const text = `Cannot read the submit file ${JSON.stringify(file)}: ${reasonOf(cause)}.`;
    throw new GryphusError('input-missing', text, { cause });
  }
}

/** Reads asynchronously, so that Ctrl-C can end it. */
async function readStandardInput(): Promise<string> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of process.stdin as AsyncIterable<Buffer>) {
    size += piece.length;
    if (size > MOST_TEXT) {
      throw new GryphusError('bad-input', `${tooLong('Standard input', MOST_TEXT).message}.`, {
        suggestions: [REMEDY],
      });
    }
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}
