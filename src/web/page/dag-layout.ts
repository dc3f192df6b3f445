import { Graph, layout } from '@dagrejs/dagre';
import type { Picture } from './api.ts';

export interface Placed {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface Drawing {
  readonly boxes: readonly Placed[];
  readonly lines: readonly {
    readonly points: readonly { readonly x: number; readonly y: number }[];
    readonly count: number;
  }[];
  readonly width: number;
  readonly height: number;
}

const CHARACTER = 7.5;
const MOST_CHARACTERS = 24;
const MARGIN = 16;

export function labelOf(label: string): string {
  return label.length > MOST_CHARACTERS ? `${label.slice(0, MOST_CHARACTERS - 1)}…` : label;
}

/** Places for the boxes of a picture, in pixels; depends on its shape only, not on states. */
export function drawingOf({ boxes, lines, grouped }: Picture): Drawing {
  const graph = new Graph();
  graph.setGraph({ rankdir: 'TB', nodesep: 18, ranksep: 40, marginx: MARGIN, marginy: MARGIN });
  graph.setDefaultEdgeLabel(() => ({}));
  const height = grouped ? 48 : 32;
  boxes.forEach(({ label }, i) => {
    const width = Math.max(grouped ? 120 : 56, labelOf(label).length * CHARACTER + 24);
    graph.setNode(String(i), { width, height });
  });
  for (const { from, to } of lines) graph.setEdge(String(from), String(to));
  layout(graph);
  const { width = 0, height: tall = 0 } = graph.graph() as { width?: number; height?: number };
  return {
    boxes: boxes.map((_, i) => {
      const { x, y, width: w, height: h } = graph.node(String(i)) as Placed;
      return { x: x - w / 2, y: y - h / 2, width: w, height: h };
    }),
    lines: lines.map(({ from, to, count }) => {
      const { points = [] } = graph.edge(String(from), String(to)) as { points?: { x: number; y: number }[] };
      return { points, count };
    }),
    width: Math.max(width, 100),
    height: Math.max(tall, 60),
  };
}
