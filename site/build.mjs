// Builds the site into site/dist/: the API reference from the sources' docstrings, then all pages, then a check of every
// link in what was built. `--dev`: serves the pages and shows changes at once.
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, watch } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const site = dirname(fileURLToPath(import.meta.url));
const root = dirname(site);
const dist = join(site, 'dist');
const pages = join(site, 'pages');
/** What is a page besides docs/. */
const OTHERS = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', 'examples/pi/README.md'];
const base = process.env.GRYPHUS_SITE_BASE ?? '/';

/** Runs a program of the site's own packages; ends with its status if it fails. */
function run(name, ...args) {
  const { status } = spawnSync(join(site, 'node_modules/.bin', name), args, { cwd: site, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}

/** The pages as they are now, in the places that they have in the repository. */
function collect() {
  for (const name of ['docs', ...OTHERS]) cpSync(join(root, name), join(pages, name), { recursive: true });
  cpSync(join(site, 'home.md'), join(pages, 'index.md'));
}

/** Every link of a built page to a page or a heading that was not built. */
function brokenLinks() {
  const pages = new Map(
    readdirSync(dist, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.html'))
      .map((name) => [name, readFileSync(join(dist, name), 'utf8')]),
  );
  const ids = new Map(
    [...pages].map(([name, text]) => [name, new Set([...text.matchAll(/ id="([^"]+)"/g)].map((m) => m[1]))]),
  );
  return [...pages].flatMap(([page, text]) =>
    [...text.matchAll(/<a [^>]*?href="([^"]+)"/g)]
      .map(([, href]) => new URL(href.replaceAll('&amp;', '&'), `http://site${base}${page}`))
      .filter((url) => url.host === 'site' && !leads(url, ids))
      .map((url) => `${page}: ${url.pathname}${url.hash}`),
  );
}

function leads({ pathname, hash }, ids) {
  if (!pathname.startsWith(base)) return false;
  const path = decodeURIComponent(pathname.slice(base.length));
  const file = path === '' || path.endsWith('/') ? `${path}index.html` : path;
  const headings = ids.get(file);
  if (headings === undefined) return existsSync(join(dist, file));
  return hash === '' || headings.has(decodeURIComponent(hash.slice(1)));
}

if (!existsSync(join(site, 'node_modules/.bin/vitepress'))) {
  console.error('The packages of the site are missing: npm ci in site/');
  process.exit(1);
}
rmSync(pages, { recursive: true, force: true });
run('typedoc', '--out', 'pages/docs/api');
collect();
if (process.argv.includes('--dev')) {
  watch(join(root, 'docs'), { recursive: true }, collect);
  spawn(join(site, 'node_modules/.bin/vitepress'), ['dev'], { cwd: site, stdio: 'inherit' }).once('exit', (status) =>
    process.exit(status ?? 1),
  );
} else {
  run('vitepress', 'build');
  const broken = [...new Set(brokenLinks())];
  for (const link of broken) console.error(`broken link in ${link}`);
  if (broken.length > 0) process.exit(1);
}
