import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '..');
const text = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const under = (dir: string) => readdirSync(join(ROOT, dir), { recursive: true, encoding: 'utf8' });

/** What one variable part of a message may be in the source. */
const VARIES = String.raw`[^\n]{1,120}?`;

it('every message of the page of errors is in the source', () => {
  const sources = under('src').filter((name) => /\.(ts|sh|cjs)$/.test(name));
  const source = [...sources.map((name) => `src/${name}`), 'scripts/need-node.cjs'].map(text).join('\n');
  const messages = [...text('docs/error-messages.md').matchAll(/^\| `(.+?)` \|/gm)].map((row) => row[1] ?? '');
  expect(messages.length).toBeGreaterThan(30);
  const absent = messages.filter((message) => {
    const pieces = message
      .split('…')
      .map((piece) => piece.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`).replaceAll("'", String.raw`\\?'`));
    return !new RegExp(pieces.join(VARIES)).test(source);
  });
  expect(absent).toEqual([]);
});

it('every page of docs/ has one place in the contents of the site', async () => {
  // Not a module of this project: the site has its own packages.
  const { SIDEBAR } = (await import(join(ROOT, 'site/.vitepress/sidebar.mjs'))) as {
    SIDEBAR: readonly { readonly items: readonly { readonly link: string }[] }[];
  };
  const links = SIDEBAR.flatMap(({ items }) => items.map(({ link }) => link));
  const pages = under('docs')
    .filter((name) => name.endsWith('.md') && !name.startsWith('cli/'))
    .map((name) => `/docs/${name.replace(/\.md$/, '')}`);
  expect(pages.filter((page) => links.filter((link) => link === page).length !== 1)).toEqual([]);
  const there = new Set([...pages, '/docs/cli/README', '/docs/api/']);
  const gone = links.filter((link) => !there.has(link) && !text(`${link.slice(1)}.md`));
  expect(gone).toEqual([]);
});
