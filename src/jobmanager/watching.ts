import { isAttemptKey } from '../job/ids.ts';
import type { FileSize, Follow, Piece } from '../site/contract.ts';
import { octalWord, percentDecode } from '../site/escape.ts';
import { withStarsOnly } from '../util/name-patterns.ts';
import { type SiteAnswer, MOST_PIECES } from './answer.ts';
import { answerFields } from './site-context.ts';

/** The most bytes of one file in one answer. */
const MOST_OF_ONE = 4 << 20;

/** The site's words for patterns of a job's files (watching.sh). */
export function patternWord(kind: 'w' | 'W' | 'p', key: string, patterns: readonly string[]): string {
  return [kind, key, ...patterns.map(withStarsOnly)].join(':');
}

/** What a poll asks about files that grow. */
export function watchWords(followed: readonly Follow[]): string[] {
  return followed.flatMap(({ key, files }) => {
    if (files === undefined) return [];
    const wanted = files.wanted.map(
      ({ name, offset }) => `p:${key}/${octalWord(name).replaceAll(':', String.raw`\0072`)}:${offset}`,
    );
    return [patternWord(files.afresh ? 'W' : 'w', key, files.patterns), ...wanted];
  });
}

export function mostOfPiece(followed: readonly Follow[]): number {
  const count = followed.reduce((sum, { files }) => sum + (files?.wanted.length ?? 0), 0);
  return Math.min(MOST_OF_ONE, Math.floor(MOST_PIECES / Math.max(1, count)));
}

export function sizesOf(answer: SiteAnswer): FileSize[] {
  return answerFields(answer, 'size').flatMap(([key = '', size, word = '']): FileSize[] => {
    const name = percentDecode(word);
    const bytes = Number(size);
    // A name that is not UTF-8 stays encoded, and cannot be asked for.
    if (!isAttemptKey(key) || !Number.isSafeInteger(bytes) || (name === word && word.includes('%'))) return [];
    return [{ key, name, bytes }];
  });
}

/** The pieces of the files that were asked for, in that order. */
export function piecesOf(answer: SiteAnswer, followed: readonly Follow[]): Piece[] {
  const line = answer.lines.find(({ kind }) => kind === 'pieces');
  const bytes = line?.bytes;
  if (line === undefined || bytes === undefined) return [];
  const lengths = line.rest.split(' ').map((text) => Math.max(0, Number(text) || 0));
  let at = 0;
  return followed.flatMap(({ key, files }) =>
    (files?.wanted ?? []).map(({ name, offset }): Piece => {
      const length = lengths.shift() ?? 0;
      const data = bytes.subarray(at, at + length);
      at += length;
      return { key, name, offset, data };
    }),
  );
}
