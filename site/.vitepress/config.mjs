import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitepress';
import { anchor } from './anchor.mjs';
import { SIDEBAR } from './sidebar.mjs';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const { description, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
/** Where the sources can be read, if anywhere: a link to a source file is text without it. */
const repository = process.env.GRYPHUS_REPOSITORY;

/** Pages stand as in the repository, so that their links hold; build.mjs puts them there. */
const pages = join(root, 'site/pages');

export default defineConfig({
  srcDir: pages,
  outDir: join(root, 'site/dist'),
  cacheDir: join(root, 'site/.cache'),
  base: process.env.GRYPHUS_SITE_BASE ?? '/',
  lang: 'en',
  title: 'Gryphus',
  description,
  lastUpdated: false,
  markdown: {
    // `<file>` is a placeholder: the pages have no HTML.
    html: false,
    anchor: { slugify: anchor },
    config: (md) => {
      drawMermaid(md);
      keepBraces(md);
      linkSources(md);
    },
  },
  themeConfig: {
    search: { provider: 'local', options: { detailedView: true } },
    sidebar: SIDEBAR,
    outline: [2, 3],
    nav: [
      { text: 'In five minutes', link: '/docs/five-minutes/slurm', activeMatch: '/five-minutes/' },
      { text: 'Commands', link: '/docs/cli/README', activeMatch: '/cli/' },
      { text: 'Error messages', link: '/docs/error-messages' },
      { text: `v${version}`, link: '/CHANGELOG' },
    ],
    footer: { message: 'Apache License 2.0' },
  },
});

/** A mermaid block is drawn in the browser. */
function drawMermaid(md) {
  const fence = md.renderer.rules.fence;
  md.renderer.rules.fence = (tokens, at, ...rest) =>
    tokens[at].info.trim() === 'mermaid'
      ? `<Mermaid code="${encodeURIComponent(tokens[at].content)}" />`
      : fence(tokens, at, ...rest);
}

/** `{{…}}` and the like in a page is text: no page has code for Vue. */
function keepBraces(md) {
  md.renderer.rules.text = (tokens, at) => md.utils.escapeHtml(tokens[at].content).replaceAll('{{', '&#123;&#123;');
  md.renderer.rules.code_inline = (tokens, at) => `<code v-pre>${md.utils.escapeHtml(tokens[at].content)}</code>`;
}

/** A link to what is no page of the site leads to the repository, or is left out. */
function linkSources(md) {
  md.core.ruler.after('inline', 'sources', ({ tokens, env }) => {
    for (const { children } of tokens) {
      let open = false;
      for (const token of children ?? []) {
        if (token.type === 'link_open') open = toRepository(token, env.path);
        if (token.type === 'link_close' && open) token.tag = repository === undefined ? 'span' : 'a';
      }
    }
  });
}

/** True if the link is to a file of the repository that is no page. */
function toRepository(token, page) {
  const href = token.attrGet('href') ?? '';
  const path = relative(pages, resolve(dirname(page), href.replace(/#.*$/, '')));
  if (/^(\w+:|#|\/)/.test(href) || existsSync(join(pages, path)) || !existsSync(join(root, path))) return false;
  if (repository === undefined) {
    token.tag = 'span';
    token.attrs = [];
  } else token.attrs = [['href', `${repository}/${path}`]];
  return true;
}
