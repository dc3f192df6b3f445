import type { DagGraph } from '../language/graph.ts';
import { lookOf, STATUSES, statusClass } from './palette.ts';
import { type Box, pictureOf } from './picture.ts';

/** A Mermaid flowchart. `status` holds STATUS numbers by node; without it every node is shown as waiting. */
export function drawMermaid(dag: DagGraph, status?: Uint8Array): string {
  const { boxes, lines } = pictureOf(dag);
  const out = ['flowchart TD'];
  boxes.forEach((box, i) => {
    out.push(`  n${i}["${escaped(textOf(box))}"]:::${statusClass(worst(box, status))}`);
  });
  for (const { from, to, count } of lines) out.push(`  n${from} -->${count > 1 ? `|${count}|` : ''} n${to}`);
  for (const s of STATUSES) {
    const { fill, stroke } = lookOf(s);
    out.push(`  classDef ${statusClass(s)} fill:${fill},stroke:${stroke},color:#18181b`);
  }
  return `${out.join('\n')}\n`;
}

function textOf(box: Box): string {
  return box.nodes.length === 1 ? box.label : `${box.label} × ${box.nodes.length}`;
}

/**
 * A box of many nodes shows the state that matters most to a reader: failures first, then running nodes, then the rest.
 */
const URGENCY = [6, 7, 3, 2, 4, 1, 0, 5] as const;

export function worst(box: Box, status: Uint8Array | undefined): number {
  if (status === undefined) return 1;
  const there = new Set(box.nodes.map((node) => status[node] ?? 1));
  return URGENCY.find((s) => there.has(s)) ?? 1;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
