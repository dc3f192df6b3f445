/**
 * The body of a manual page (the macros of man(7)) for the Markdown that our pages are written in: headings, paragraphs,
 * lists, tables, blocks of code, `code`, **bold**, *italic* and links. A table's rows become tagged paragraphs. Lines
 * before the first `##` heading are the first section's, `first`; drawings (mermaid) are left out.
 */
export function manMarkup(markdown: string, first: string): string {
  const out: string[] = [];
  const lines = markdown.replace(/^# .*\n+/, '').split('\n');
  if (!/^## /m.test(lines.find((line) => line !== '') ?? '')) out.push(heading('SH', first));
  /** Whether a heading has just been written, after which no paragraph macro may stand. */
  let fresh = true;
  for (let at = 0; at < lines.length; ) {
    const block = blockAt(lines, at);
    at += block.lines;
    const text = show(block, fresh);
    if (text === '') continue;
    out.push(text);
    fresh = block.kind === 'heading';
  }
  return `${out.join('\n')}\n`;
}

type Block =
  | { readonly kind: 'blank' | 'drawing'; readonly lines: number }
  | { readonly kind: 'heading'; readonly level: number; readonly text: string; readonly lines: number }
  | { readonly kind: 'code'; readonly text: readonly string[]; readonly lines: number }
  | { readonly kind: 'item'; readonly text: string; readonly lines: number }
  | { readonly kind: 'table'; readonly rows: readonly (readonly string[])[]; readonly lines: number }
  | { readonly kind: 'paragraph'; readonly text: string; readonly lines: number };

function blockAt(lines: readonly string[], at: number): Block {
  const line = lines[at] ?? '';
  const run = (is: (line: string) => boolean) => {
    let end = at + 1;
    while (end < lines.length && is(lines[end] ?? '')) end += 1;
    return lines.slice(at, end);
  };
  if (line.trim() === '') return { kind: 'blank', lines: 1 };
  const title = /^(#+) (.*)$/.exec(line);
  if (title) return { kind: 'heading', level: title[1]?.length ?? 2, text: title[2] ?? '', lines: 1 };
  if (line.startsWith('```')) {
    const text = run((one) => !one.startsWith('```')).slice(1);
    if (line === '```mermaid') return { kind: 'drawing', lines: text.length + 2 };
    return { kind: 'code', text, lines: text.length + 2 };
  }
  if (line.startsWith('    ')) {
    const text = run((one) => one.startsWith('    '));
    return { kind: 'code', text: text.map((one) => one.slice(4)), lines: text.length };
  }
  if (line.startsWith('|')) {
    const text = run((one) => one.startsWith('|'));
    return { kind: 'table', rows: text.filter((_, row) => row !== 1).map(cells), lines: text.length };
  }
  const isNew = (one: string) => one.trim() === '' || /^(?:- |#+ |```|\|)/.test(one);
  const text = run((one) => !isNew(one));
  const words = text.map((one) => one.trim()).join(' ');
  return line.startsWith('- ')
    ? { kind: 'item', text: words.slice(2), lines: text.length }
    : { kind: 'paragraph', text: words, lines: text.length };
}

function cells(row: string): string[] {
  return row
    .replace(/^\|/, '')
    .replace(/\|\s*$/, '')
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll('\\|', '|').replaceAll('<br>', '; '));
}

function show(block: Block, fresh: boolean): string {
  switch (block.kind) {
    case 'blank':
    case 'drawing':
      return '';
    case 'heading':
      return heading(block.level === 2 ? 'SH' : 'SS', block.text);
    case 'code':
      return [fresh ? '' : '.PP', '.RS 4', '.nf', ...block.text.map((one) => line(verbatim(one))), '.fi', '.RE']
        .filter((one) => one !== '')
        .join('\n');
    case 'item': {
      const [, tag, rest] = /^((?:`[^`]+`(?:, )?)+): (.*)$/.exec(block.text) ?? [];
      return tag === undefined ? `.IP \\(bu 2\n${inline(block.text)}` : tagged(tag, rest ?? '');
    }
    case 'table': {
      const [head = [], ...rows] = block.rows;
      return rows.map((row) => tagged(row[0] ?? '', rowText(head, row))).join('\n');
    }
    case 'paragraph':
      return `${fresh ? '' : '.PP\n'}${inline(block.text)}`;
  }
}

/** The cells after a row's first: each with its column's title, a ticked one as its title only. */
function rowText(head: readonly string[], row: readonly string[]): string {
  const ticked = head.filter((_, column) => row[column] === '✓');
  const rest = row.flatMap((cell, column) => {
    const title = head.length > 2 ? (head[column] ?? '') : '';
    if (column === 0 || cell === '' || cell === '✓') return [];
    return [title === '' ? cell : `${title[0]?.toUpperCase()}${title.slice(1)}: ${cell}.`];
  });
  const places = ticked.length === 0 ? [] : [`(${ticked.join('; ')})`];
  return [...rest, ...places].join(' ');
}

function tagged(tag: string, text: string): string {
  return `.TP\n${inline(tag)}\n${text === '' ? '\\&' : inline(text)}`;
}

function heading(macro: 'SH' | 'SS', text: string): string {
  const plain = text.replaceAll('`', '').replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1');
  return `.${macro} "${escaped(macro === 'SH' ? plain.toUpperCase() : plain).replaceAll('"', '\\(dq')}"`;
}

/** Text with its marks as font changes. A link to a page of ours is its text, any other has its address behind it. */
function inline(text: string): string {
  const parts = text.split(/(`[^`]+`|\[[^\]]*\]\([^)]*\)|\*\*[^*]+\*\*|(?<![\w*])\*[^*\s][^*]*\*(?![\w*]))/);
  const shown = parts.map((part, at) => {
    if (at % 2 === 0) return escaped(part.replaceAll(/\\([<>|*_])/g, '$1'));
    const [, words = '', to = ''] = /^\[([^\]]*)\]\(([^)]*)\)$/.exec(part) ?? [];
    if (part.startsWith('[')) return `${inline(words)}${/^https?:/.test(to) ? escaped(` <${to}>`) : ''}`;
    if (part.startsWith('`')) return code(part.slice(1, -1));
    if (part.startsWith('**')) return `\\fB${inline(part.slice(2, -2))}\\fR`;
    return `\\fI${inline(part.slice(1, -1))}\\fR`;
  });
  // Line breaks at the ends of sentences keep the source readable and let roff space them.
  return shown
    .join('')
    .replaceAll(/([.:;]) (?=\S)/g, '$1\n')
    .split('\n')
    .map(line)
    .join('\n');
}

/** Code in bold, what the reader replaces (`<value>`) in italics. */
function code(text: string): string {
  return text
    .split(/(<[\w ]+>)/)
    .map((part, at) =>
      at % 2 === 1 ? `\\fI${escaped(part.slice(1, -1))}\\fR` : part === '' ? '' : `\\fB${verbatim(part)}\\fR`,
    )
    .join('');
}

/** Prose; the hyphens of an option in it are those that a terminal takes. */
function escaped(text: string): string {
  return text.replaceAll('\\', '\\(rs').replaceAll(/(?<![\w-])--[\w-]+/g, (option) => option.replaceAll('-', '\\-'));
}

/** Characters that are to be copied from the page into a terminal: roff would typeset them otherwise. */
function verbatim(text: string): string {
  const roff: Readonly<Record<string, string>> = { "'": '\\(aq', '`': '\\(ga', '^': '\\(ha', '~': '\\(ti', '-': '\\-' };
  return text.replaceAll('\\', '\\(rs').replaceAll(/['`^~-]/g, (one) => roff[one] ?? one);
}

/** A line that roff does not take for a request. */
function line(text: string): string {
  return /^[.']/.test(text) ? `\\&${text}` : text;
}
