import { setTimeout as delay } from 'node:timers/promises';
import type { AttemptKey } from '../job/ids.ts';
import type { Upload } from '../site/contract.ts';
import type { RunResult } from '../transport/contract.ts';
import { shellQuote } from '../util/shell-quote.ts';
import { homeOf } from './hello.ts';
import type { SiteContext } from './site-context.ts';

/** At once for one site: each has a channel of its own on the connection. */
const AT_ONCE = 3;
/** A server from which nothing moves for so long is given up, seconds. */
const IDLE_S = 60;
/**
 * Exit statuses of curl that speak of the way there and not of what was asked. HTTP knows no way to go on with a PUT, so
 * it begins anew; milliseconds between.
 */
const PASSING: ReadonlySet<number> = new Set([5, 6, 7, 18, 28, 35, 52, 55, 56, 92]);
const TRIES = 3;
const PAUSE_MS = 2000;
/** Exit status of the shell where the job made no such plain file. */
const NO_FILE = 66;

/**
 * Puts results of an ended attempt where URLs say, by the site's curl. What curl is told, the log-in among it, comes
 * through its standard input: it is on no command line, in no file and no environment there, and the job is over.
 * Resolves with those that are whole at their place; the others are for the caller to bring home.
 */
export async function upload(site: SiteContext, key: AttemptKey, files: readonly Upload[]): Promise<readonly string[]> {
  const home = homeOf(await site.session.hello());
  const there: string[] = [];
  const left = [...files];
  const worker = async (): Promise<void> => {
    for (let file = left.shift(); file !== undefined; file = left.shift()) {
      if (await putOne(site, `${home}/jobs/${key}/work`, file)) there.push(file.name);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return there;
}

async function putOne(site: SiteContext, dir: string, file: Upload): Promise<boolean> {
  // Names that would lead elsewhere are for those who refuse them in words.
  if (file.name.split('/').includes('..')) return false;
  const name = shellQuote(`./${file.name}`);
  const begin = `cd ${shellQuote(dir)} && [ -f ${name} ] && wc -c <${name} || exit ${NO_FILE}`;
  const send = () => curl(site, begin, file, [`upload-file = ${quoted(`./${file.name}`)}`, 'output = "/dev/null"']);
  let put = await send();
  for (let turn = 2; turn <= TRIES && PASSING.has(put.code ?? 0); turn++) {
    await delay(PAUSE_MS);
    put = await send();
  }
  if (put.code !== 0) return false;
  const bytes = Number(put.stdout.toString('utf8').trim());
  const seen = await curl(site, ':', file, ['head']);
  const length = [...seen.stdout.toString('latin1').matchAll(/^content-length: *(\d+)/gim)].at(-1)?.[1];
  // Some servers take a file and do not show it again.
  return seen.code !== 0 || length === undefined || Number(length) === bytes;
}

function curl(site: SiteContext, begin: string, { url, login }: Upload, more: readonly string[]): Promise<RunResult> {
  const lines = [
    'globoff',
    'silent',
    'fail',
    'location',
    'proto = "=http,https"',
    'connect-timeout = 60',
    'speed-limit = 1',
    `speed-time = ${IDLE_S}`,
    `url = ${quoted(url)}`,
    ...(login === undefined ? [] : [`user = ${quoted(`${login.user}:${login.password}`)}`]),
    ...more,
  ];
  return site.transport.run(`${begin}; exec curl -q -K -`, { stdin: `${lines.join('\n')}\n` });
}

/** A value of curl's configuration. */
function quoted(text: string): string {
  const escaped = text
    .replace(/["\\]/g, '\\$&')
    .replaceAll('\n', '\\n')
    .replaceAll('\r', '\\r')
    .replaceAll('\t', '\\t');
  return `"${escaped}"`;
}
