import { GryphusError } from '../errors.ts';
import type { AttrTexts } from '../job/attrs.ts';
import { readString } from '../job/values.ts';
import { parseRemaps, transferList } from '../job/transfer-lists.ts';
import { fileNameOf, isUrl, parseFileUrl } from '../staging/url/file-url.ts';
import { URL_SCHEMES } from '../staging/url/schemes.ts';

const SHARED = ['TransferInput', 'TransferOutputRemaps', 'OutputDestination', 'CheckpointDestination'] as const;

/** Refuses unreachable URLs in transfer lists before a job waits for them. Each text is read once. */
export class UrlCheck {
  readonly #seen = new Set<string>();

  check(own: AttrTexts, shared: AttrTexts): void {
    for (const name of SHARED) {
      const text = readString({ get: (attr) => own[attr] ?? shared[attr] ?? undefined }, name);
      if (text === undefined || this.#seen.has(text)) continue;
      if (!text.includes('://') && name !== 'CheckpointDestination') continue;
      this.#seen.add(text);
      if (name === 'TransferInput') transferList(text).filter(isUrl).forEach(checkInput);
      else if (name === 'OutputDestination') [text].filter(isUrl).forEach((url) => check('output_destination', url));
      else if (name === 'CheckpointDestination') check('checkpoint_destination', text);
      else for (const to of parseRemaps(text).values()) if (isUrl(to)) check('transfer_output_remaps', to);
    }
  }
}

function checkInput(text: string): void {
  fileNameOf(check('transfer_input_files', text));
}

function check(command: string, text: string): URL {
  try {
    return parseFileUrl(text, URL_SCHEMES);
  } catch (thrown) {
    if (!(thrown instanceof GryphusError)) throw thrown;
    throw new GryphusError(thrown.code, `${command}: ${thrown.message}`, { suggestions: thrown.suggestions });
  }
}
