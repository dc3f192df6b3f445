/** `up`: from the worker to the agent; `down`: the other way. */
export type MailboxDirection = 'up' | 'down';

type Mark = 'over' | 'taken' | 'gone';

/** The meaning of a file in a box. Each link has a name of 16 hexadecimal digits, chosen by the worker. */
export type BoxFile =
  | { readonly kind: 'letter'; readonly direction: MailboxDirection; readonly link: string; readonly seq: number }
  /** From an agent that does not know this link (for example, after a restart): the worker must open a new one. */
  | { readonly kind: 'over'; readonly link: string }
  /** From the agent, before it reads a link's first letter: an agent that finds this for an unknown link came later. */
  | { readonly kind: 'taken'; readonly link: string }
  /** From the worker, which gave up the link. */
  | { readonly kind: 'gone'; readonly link: string };

const LETTER = /^(up|down)\.([0-9a-f]{16})\.(\d{1,15})$/;
const MARK = /^(over|taken|gone)\.([0-9a-f]{16})$/;

export function letterFile(direction: MailboxDirection, link: string, seq: number): string {
  return `${direction}.${link}.${seq}`;
}

export function markFile(kind: Mark, link: string): string {
  return `${kind}.${link}`;
}

/** `undefined` for any other file, such as one that is not complete yet. */
export function parseBoxFile(name: string): BoxFile | undefined {
  const letter = LETTER.exec(name);
  if (letter) {
    return { kind: 'letter', direction: letter[1] as MailboxDirection, link: letter[2] ?? '', seq: Number(letter[3]) };
  }
  const mark = MARK.exec(name);
  return mark ? { kind: mark[1] as Mark, link: mark[2] ?? '' } : undefined;
}
