import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, normalize, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = resolve(import.meta.dirname, '..');
const text = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const under = (dir: string) =>
  readdirSync(join(ROOT, dir), { recursive: true, encoding: 'utf8' }).map((name) => `${dir}/${name}`);

const PAGES = [...readdirSync(ROOT), ...under('docs')].filter((name) => name.endsWith('.md'));
const SOURCES = under('src').filter((name) => /\.(ts|sh|lua|mjs)$/.test(name));
const NAMES = new Set(['src', 'test', 'scripts', 'bench', 'docs'].flatMap(under).map((name) => basename(name)));

/** Files of a toy backend, of the user's, and those that the build and a site make. */
const ELSEWHERE = /NAME|^(dist\/|site\/)?(worker|generate)\.mjs$|^backend\.sh$/;
const PATH = /(?<![\w/.~$}-])((?:src|test|scripts|bench|docs|\.ci)\/[\w./-]*[\w/])/g;

function absent(page: string, content: string, named: RegExp, isThere: (name: string) => boolean): string[] {
  return [...content.matchAll(named)]
    .map((found) => found[1] ?? '')
    .filter((name) => !ELSEWHERE.test(name) && !isThere(name))
    .map((name) => `${page}: ${name}`);
}

/** A heading's anchor, as GitHub makes it. */
function anchor(heading: string): string {
  const plain = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
  return plain
    .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
    .trim()
    .replaceAll(' ', '-');
}

describe('the documents', () => {
  it('name only files that exist', () => {
    const exists = (page: string) => (name: string) =>
      existsSync(join(ROOT, name)) || existsSync(join(ROOT, dirname(page), name));
    const paths = PAGES.flatMap((page) => absent(page, text(page), PATH, exists(page)));
    const files = PAGES.flatMap((page) =>
      absent(page, text(page), /`([\w./-]+\.(?:ts|sh|lua|mjs|awk))`/g, (name) => NAMES.has(basename(name))),
    );
    expect([...paths, ...files]).toEqual([]);
  });

  it('link only to pages and headings that exist', () => {
    const broken = PAGES.flatMap((page) =>
      [...text(page).matchAll(/\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)]*))?\)/g)].flatMap(([link, to, heading]) => {
        const target = to ? normalize(join(dirname(page), to)) : page;
        if (!existsSync(join(ROOT, target))) return [`${page}: ${link}`];
        if (heading === undefined || !target.endsWith('.md')) return [];
        const anchors = [...text(target).matchAll(/^#+ (.*)$/gm)].map((found) => anchor(found[1] ?? ''));
        return anchors.includes(heading) ? [] : [`${page}: ${link}`];
      }),
    );
    expect(broken).toEqual([]);
  });

  it('of the architecture list every module', () => {
    const listed = new Set(
      [...text('docs/ARCHITECTURE.md').matchAll(/^\| ((?:`[\w/-]+`(?:, )?)+) \|/gm)].flatMap((row) =>
        [...(row[1] ?? '').matchAll(/`([\w/-]+)`/g)].map((found) => found[1] ?? ''),
      ),
    );
    const modules = readdirSync(join(ROOT, 'src')).map((name) => name.replace(/\.ts$/, ''));
    expect(modules.filter((name) => !listed.has(name))).toEqual([]);
    const gone = [...listed].filter(
      (name) => !['', '.ts'].some((end) => existsSync(join(ROOT, 'src', `${name}${end}`))),
    );
    expect(gone).toEqual([]);
  });

  it('that comments cite exist', () => {
    const gone = SOURCES.flatMap((source) => {
      const comments = (text(source).match(/^\s*(?:\/\/|\/?\*|#).*$/gm) ?? []).join('\n');
      return [
        ...absent(source, comments, PATH, (name) => existsSync(join(ROOT, name))),
        ...absent(source, comments, /(?<![\w./-])([\w/-]+\.(?:ts|sh|lua|mjs))\b/g, (name) => NAMES.has(basename(name))),
      ];
    });
    expect(gone).toEqual([]);
  });
});
