import type { UserLogEvent } from './event.ts';
import type { Block } from './resource-table.ts';
import { type LineShape, SHAPES, type Shape } from './shapes.ts';
import { type Fields, oneLine } from './template.ts';
import { type DateStyle, formatEventTime, parseEventTime } from './time.ts';

/** The line that ends every event. */
const END = '...';

/** The event in the form that HTCondor's own tools read, including the last line `...` and its newline. */
export function printUserLog(event: UserLogEvent, style: DateStyle = {}): string {
  const number = event.type === 'other' ? event.number : SHAPES[event.type].number;
  const lines = event.type === 'other' ? event.lines.map(oneLine) : printShape(SHAPES[event.type], event);
  const id = `(${three(event.cluster)}.${three(event.proc)}.${three(event.subproc ?? 0)})`;
  return `${three(number)} ${id} ${formatEventTime(event.at, style)} ${[...lines, END].join('\n')}\n`;
}

function printShape(shape: Shape, event: UserLogEvent): string[] {
  const fields = event as unknown as Fields;
  const lines: string[] = [];
  for (const part of shape.lines) {
    if (!isLine(part)) {
      lines.push(...part.print(fields[part.field]));
      continue;
    }
    if (part.when && !part.when(fields)) continue;
    const line = part.template.print(fields);
    if (line !== undefined) lines.push(line);
  }
  return lines;
}

/** The events in a log, as far as it has been written. */
export interface ParsedLog {
  readonly events: readonly UserLogEvent[];
  /** How many characters were consumed; after them comes an incomplete event, if anything. */
  readonly taken: number;
  /** Numbers, from 1, of lines that are not part of an event; they were skipped. */
  readonly damaged: readonly number[];
}

const HEAD = /^(\d{3}) \((\d+)\.(\d+)\.(\d+)\) (\S+ \S+) (.*)$/;

/** Total: an event with an unknown number or shape has the type `other`, and damage is skipped up to the next `...`. */
export function parseUserLog(text: string, now: number = Date.now()): ParsedLog {
  const events: UserLogEvent[] = [];
  const damaged: number[] = [];
  let taken = 0;
  let line = 1;
  for (;;) {
    const end = endOfEvent(text, taken);
    if (end === undefined) return { events, taken, damaged };
    const lines = text.slice(taken, end.start).split('\n').slice(0, -1);
    const event = parseEvent(lines, now);
    if (event) events.push(event);
    else damaged.push(line);
    line += lines.length + 1;
    taken = end.after;
  }
}

function endOfEvent(text: string, from: number): { start: number; after: number } | undefined {
  for (let start = from; ; ) {
    const after = text.indexOf('\n', start);
    if (after < 0) return undefined;
    if (text.slice(start, after) === END) return { start, after: after + 1 };
    start = after + 1;
  }
}

function parseEvent(lines: readonly string[], now: number): UserLogEvent | undefined {
  const head = HEAD.exec(lines[0] ?? '');
  const at = head && parseEventTime(head[5] ?? '', now);
  if (!head || at === null || at === undefined) return undefined;
  const number = Number(head[1]);
  const subproc = Number(head[4]);
  const stamp = { cluster: Number(head[2]), proc: Number(head[3]), ...(subproc === 0 ? {} : { subproc }), at };
  const body = [head[6] ?? '', ...lines.slice(1)];
  for (const [type, shape] of Object.entries(SHAPES)) {
    const fields = shape.number === number ? parseShape(shape, body) : undefined;
    if (fields) return { ...stamp, type, ...fields } as unknown as UserLogEvent;
  }
  return { ...stamp, type: 'other', number, lines: body };
}

function parseShape(shape: Shape, lines: readonly string[]): Fields | undefined {
  const fields: Record<string, unknown> = {};
  let at = 0;
  for (const part of shape.lines) {
    if (!isLine(part)) {
      const found = part.parse(lines, at);
      if (!found) continue;
      fields[part.field] = found.value;
      at = found.next;
      continue;
    }
    const line = lines[at];
    const found = line === undefined ? undefined : part.template.parse(line);
    if (found) {
      Object.assign(fields, found);
      at++;
    } else if (!part.optional) return undefined;
  }
  const ended = !shape.ends || 'exitCode' in fields || 'signal' in fields;
  return at === lines.length && ended ? fields : undefined;
}

function isLine(part: LineShape | Block): part is LineShape {
  return 'template' in part;
}

function three(n: number): string {
  return String(n).padStart(3, '0');
}
