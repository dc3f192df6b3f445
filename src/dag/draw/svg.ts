import type { DagGraph } from '../language/graph.ts';
import { type Layout, layOut, MOST_LABEL, type PlacedBox } from './layout.ts';
import { lookOf, STATUSES, statusClass } from './palette.ts';
import { type Picture, pictureOf } from './picture.ts';
import { counted } from '../../util/plain-text.ts';

const LEGEND = 34;

/** An SVG drawing. `status` holds STATUS numbers by node; without it every node is shown as waiting. */
export function drawSvg(dag: DagGraph, title: string, status?: Uint8Array): string {
  const picture = pictureOf(dag);
  const layout = layOut(picture);
  const width = Math.ceil(Math.max(layout.width, 660));
  const height = Math.ceil(layout.height + 2 * LEGEND);
  const shift = (width - layout.width) / 2;
  const total = dag.order.length + dag.services.length;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">`,
    `<title>${escaped(title)}</title>`,
    '<style>text{font:12px sans-serif;fill:#18181b}.small{font-size:11px;fill:#3f3f46}.line{fill:none;stroke:#a1a1aa}</style>',
    '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerUnits="userSpaceOnUse" markerWidth="9" markerHeight="9" orient="auto">' +
      '<path d="M0 0L8 4L0 8z" fill="#71717a"/></marker></defs>',
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    `<text x="24" y="22" font-weight="bold">${escaped(title)}</text>`,
    `<text x="${width - 24}" y="22" text-anchor="end" class="small">${counted(total, 'node')}, ${dag.edges.count} ${dag.edges.count === 1 ? 'dependency' : 'dependencies'}</text>`,
    `<g transform="translate(${shift} ${LEGEND})">`,
    ...linesSvg(picture, layout),
    ...layout.placed.map((placed) => boxSvg(placed, status)),
    '</g>',
    status === undefined ? '' : legend(height - 16),
    '</svg>\n',
  ].join('\n');
}

function linesSvg(picture: Picture, layout: Layout): readonly string[] {
  return picture.lines.map(({ from, to, count }) => {
    const a = layout.placed[from];
    const b = layout.placed[to];
    if (a === undefined || b === undefined) return '';
    const thick = (1 + Math.min(4, Math.log10(count))).toFixed(1);
    return `<path class="line" stroke-width="${thick}" marker-end="url(#end)" d="${curve(a, b)}"/>`;
  });
}

/** A curve down from `a` to `b`. If one stands right below the other, it bends around whatever is between them. */
function curve(a: PlacedBox, b: PlacedBox): string {
  const at = (x: number, y: number): string => `${x.toFixed(1)} ${y.toFixed(1)}`;
  const [x1, y1, x2, y2] = [a.x + a.width / 2, a.y + a.height, b.x + b.width / 2, b.y - 1];
  const skips = y2 - y1 > 2 * a.height + 60;
  if (skips && Math.abs(x1 - x2) < Math.max(a.width, b.width) / 2) {
    const side = x1 + Math.max(a.width, b.width) * 1.2;
    const [from, to] = [a.y + a.height / 2, b.y + b.height / 2];
    return `M${at(a.x + a.width, from)}C${at(side, from)} ${at(side, to)} ${at(b.x + b.width + 1, to)}`;
  }
  const bend = (y1 + y2) / 2;
  return `M${at(x1, y1)}C${at(x1, bend)} ${at(x2, bend)} ${at(x2, y2)}`;
}

function boxSvg({ box, x, y, width, height }: PlacedBox, status: Uint8Array | undefined): string {
  const label = box.label.length > MOST_LABEL ? `${box.label.slice(0, MOST_LABEL - 1)}…` : box.label;
  const middle = (x + width / 2).toFixed(1);
  const single = box.nodes.length === 1;
  const own = status?.[box.nodes[0] ?? 0] ?? 1;
  const look = single ? lookOf(own) : lookOf(1);
  const parts = [
    `<g class="${single ? statusClass(own) : 'group'}"><title>${escaped(tip(box.label, box.nodes, status))}</title>`,
    `<rect x="${x.toFixed(1)}" y="${y}" width="${width.toFixed(1)}" height="${height}" rx="6" fill="${look.fill}" stroke="${look.stroke}"/>`,
    `<text x="${middle}" y="${single ? y + height / 2 + 4 : y + 19}" text-anchor="middle">${escaped(label)}</text>`,
  ];
  if (!single) {
    parts.push(`<text x="${middle}" y="${y + 33}" text-anchor="middle" class="small">${box.nodes.length} nodes</text>`);
    parts.push(...bar(x + 8, y + height - 9, width - 16, shares(box.nodes, status)));
  }
  return `${parts.join('')}</g>`;
}

/** How many of the nodes are in each state, in the order of the legend. */
function shares(nodes: readonly number[], status: Uint8Array | undefined): readonly (readonly [number, number])[] {
  const counts = new Map<number, number>();
  for (const node of nodes) counts.set(status?.[node] ?? 1, (counts.get(status?.[node] ?? 1) ?? 0) + 1);
  return STATUSES.filter((s) => counts.has(s)).map((s) => [s, (counts.get(s) ?? 0) / nodes.length]);
}

function bar(x: number, y: number, width: number, parts: readonly (readonly [number, number])[]): readonly string[] {
  let at = x;
  return parts.map(([status, share]) => {
    const { fill, stroke } = lookOf(status);
    const rect = `<rect x="${at.toFixed(1)}" y="${y}" width="${(share * width).toFixed(1)}" height="5" fill="${fill}" stroke="${stroke}" stroke-width="0.6"/>`;
    at += share * width;
    return rect;
  });
}

function tip(label: string, nodes: readonly number[], status: Uint8Array | undefined): string {
  const parts = shares(nodes, status).map(([s, share]) => `${Math.round(share * nodes.length)} ${lookOf(s).word}`);
  return `${label}: ${parts.join(', ')}`;
}

function legend(y: number): string {
  let x = 24;
  return STATUSES.map((status) => {
    const { fill, stroke, word } = lookOf(status);
    const item = `<rect x="${x}" y="${y - 9}" width="11" height="11" rx="2" fill="${fill}" stroke="${stroke}"/><text x="${x + 15}" y="${y}" class="small">${word}</text>`;
    x += 24 + word.length * 6;
    return item;
  }).join('');
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
