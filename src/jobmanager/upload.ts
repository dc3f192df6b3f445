import { setTimeout as delay } from 'node:timers/promises';
import type { AttemptKey } from '../job/ids.ts';
import type { Upload } from '../site/contract.ts';
import type { RunResult } from '../transport/contract.ts';
import { shellQuote } from '../util/shell-quote.ts';
import { homeOf } from './hello.ts';
import type { JobManagerContext } from './site-context.ts';

/** How many uploads run at once for a site: each takes a channel of the connection. */
const AT_ONCE = 3;
/** A server is given up after this many seconds without progress. */
const IDLE_S = 60;
/**
 * curl's exit statuses for trouble on the way rather than with the request. HTTP cannot resume a PUT, so it starts
 * over; the pause is in milliseconds.
 */
const PASSING: ReadonlySet<number> = new Set([5, 6, 7, 18, 28, 35, 52, 55, 56, 92]);
const TRIES = 3;
const PAUSE_MS = 2000;
/** The shell's exit status if the job made no such plain file. */
const NO_FILE = 66;

/**
 * Uploads results of an ended attempt to URLs with the site's curl. curl's options, including any log-in, come through
 * its standard input, so they are on no command line, in no file and in no environment there. The job is over by then.
 * Resolves with the files that are complete at their URL; the caller fetches the others.
 */
export async function upload(
  site: JobManagerContext,
  key: AttemptKey,
  files: readonly Upload[],
): Promise<readonly string[]> {
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

async function putOne(site: JobManagerContext, dir: string, file: Upload): Promise<boolean> {
  // Names that lead elsewhere are left to the code that refuses them with a message.
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
  // Some servers accept a file but do not show it again.
  return seen.code !== 0 || length === undefined || Number(length) === bytes;
}

function curl(
  site: JobManagerContext,
  begin: string,
  { url, login }: Upload,
  more: readonly string[],
): Promise<RunResult> {
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

/** Quotes a value for curl's configuration. */
function quoted(text: string): string {
  const escaped = text
    .replace(/["\\]/g, '\\$&')
    .replaceAll('\n', '\\n')
    .replaceAll('\r', '\\r')
    .replaceAll('\t', '\\t');
  return `"${escaped}"`;
}
