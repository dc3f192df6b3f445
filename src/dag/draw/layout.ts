import type { Box, Picture } from './picture.ts';

export interface PlacedBox {
  readonly box: Box;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface Layout {
  readonly placed: readonly PlacedBox[];
  readonly width: number;
  readonly height: number;
}

const CHARACTER = 7.2;
const PADDING = 14;
const GAP_X = 22;
const GAP_Y = 54;
const MARGIN = 24;
const MOST_IN_ROW = 24;
const SWEEPS = 8;

/** Longer labels are cut to this many characters. */
export const MOST_LABEL = 28;

/** Puts each level in a row and places boxes near those they depend on (barycentres, a few sweeps down and up). */
export function layOut(picture: Picture): Layout {
  const rows = rowsOf(picture);
  const above = neighbours(picture, 'to');
  const below = neighbours(picture, 'from');
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const order = positions(rows, picture.boxes.length);
    const side = sweep % 2 === 0 ? above : below;
    for (const row of rows) row.sort((a, b) => centre(a, side, order) - centre(b, side, order) || a - b);
  }
  const height = picture.grouped ? 46 : 30;
  const widthOf = (box: number): number => {
    const label = picture.boxes[box]?.label ?? '';
    const least = picture.grouped ? 110 : 44;
    return Math.max(least, Math.min(label.length, MOST_LABEL) * CHARACTER + 2 * PADDING);
  };
  const rowWidth = (row: readonly number[]): number =>
    row.reduce((sum, box) => sum + widthOf(box), 0) + GAP_X * (row.length - 1);
  const lines = rows.flatMap((row) => chunks(row, MOST_IN_ROW));
  const widest = lines.reduce((most, row) => Math.max(most, rowWidth(row)), 0);
  const placed: PlacedBox[] = [];
  lines.forEach((row, r) => {
    let x = MARGIN + (widest - rowWidth(row)) / 2;
    for (const box of row) {
      const width = widthOf(box);
      const y = MARGIN + r * (height + GAP_Y);
      const shown = picture.boxes[box];
      if (shown !== undefined) placed[box] = { box: shown, x, y, width, height };
      x += width + GAP_X;
    }
  });
  return { placed, width: widest + 2 * MARGIN, height: 2 * MARGIN + lines.length * (height + GAP_Y) - GAP_Y };
}

function rowsOf(picture: Picture): number[][] {
  const rows: number[][] = [];
  picture.boxes.forEach((box, i) => {
    const row = rows[box.level] ?? [];
    row.push(i);
    rows[box.level] = row;
  });
  return rows.filter((row) => row !== undefined);
}

function neighbours(picture: Picture, end: 'from' | 'to'): readonly (readonly number[])[] {
  const lists: number[][] = picture.boxes.map(() => []);
  for (const line of picture.lines) lists[line[end]]?.push(line[end === 'from' ? 'to' : 'from']);
  return lists;
}

function positions(rows: readonly (readonly number[])[], count: number): Float64Array {
  const at = new Float64Array(count);
  for (const row of rows) row.forEach((box, i) => (at[box] = row.length === 1 ? 0.5 : i / (row.length - 1)));
  return at;
}

function centre(box: number, side: readonly (readonly number[])[], order: Float64Array): number {
  const near = side[box] ?? [];
  if (near.length === 0) return order[box] ?? 0;
  return near.reduce((sum, other) => sum + (order[other] ?? 0), 0) / near.length;
}

function chunks(row: readonly number[], most: number): readonly (readonly number[])[] {
  const lines = Math.ceil(row.length / most);
  const size = Math.ceil(row.length / Math.max(1, lines));
  return Array.from({ length: lines }, (_, i) => row.slice(i * size, (i + 1) * size));
}
