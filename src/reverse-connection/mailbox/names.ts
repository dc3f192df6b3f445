/** `up`: from the worker to the agent; `down`: the other way. */
export type Direction = 'up' | 'down';

type Mark = 'over' | 'taken' | 'gone';

/** What a file in a box is. A link has a name of its own, 16 hexadecimal digits, chosen by the worker. */
export type BoxFile =
  | { readonly kind: 'letter'; readonly direction: Direction; readonly link: string; readonly seq: number }
  /** From the agent, which knows nothing of this link (it was started again, say): a new one is due. */
  | { readonly kind: 'over'; readonly link: string }
  /** From the agent, before it reads a link's first letter: whoever finds it and knows nothing of the link came later. */
  | { readonly kind: 'taken'; readonly link: string }
  /** From the worker, which gave the link up. */
  | { readonly kind: 'gone'; readonly link: string };

const LETTER = /^(up|down)\.([0-9a-f]{16})\.(\d{1,15})$/;
const MARK = /^(over|taken|gone)\.([0-9a-f]{16})$/;

export function letterFile(direction: Direction, link: string, seq: number): string {
  return `${direction}.${link}.${seq}`;
}

export function markFile(kind: Mark, link: string): string {
  return `${kind}.${link}`;
}

/** `undefined` for what nobody of us named: a file that is not whole yet, say. */
export function parseBoxFile(name: string): BoxFile | undefined {
  const letter = LETTER.exec(name);
  if (letter) {
    return { kind: 'letter', direction: letter[1] as Direction, link: letter[2] ?? '', seq: Number(letter[3]) };
  }
  const mark = MARK.exec(name);
  return mark ? { kind: mark[1] as Mark, link: mark[2] ?? '' } : undefined;
}
