import { GryphusError } from '../errors.ts';
import type { AttemptKey } from '../job/ids.ts';
import type { FetchRequest, Upload } from '../site/contract.ts';
import { isUrl, parseFileUrl, schemeOf } from '../staging/url/file-url.ts';
import type { SiteContext } from './context.ts';
import { destination, type JobFiles } from './files.ts';

/** By FTP a result is to have its name only when it is whole, which takes more than one command. */
const SCHEMES: readonly string[] = ['http', 'https'];

/**
 * The outputs that are still to be fetched, after the site itself has put those it could where their URLs say: where the
 * user says that it can (`urls = "direct"`), and for named outputs alone. What it could not put takes the way through us,
 * which says what is wrong with it.
 */
export async function notPutThere(
  ctx: Pick<SiteContext, 'record' | 'site' | 'urls'>,
  key: AttemptKey,
  files: JobFiles,
  outputs: FetchRequest['outputs'],
): Promise<FetchRequest['outputs']> {
  if (ctx.record.urls !== 'direct' || ctx.site.upload === undefined || outputs === 'new') return outputs;
  const { access } = ctx.urls;
  const uploads: Upload[] = [];
  const there = new Set<string>();
  for (const name of outputs) {
    const to = destination(files, name);
    if (!isUrl(to)) continue;
    if (ctx.urls.outputs.has(key, to)) {
      there.add(name);
      continue;
    }
    try {
      const url = parseFileUrl(to, access.schemes);
      if (!SCHEMES.includes(schemeOf(url))) continue;
      const { login } = await access.optionsFor(url, undefined);
      uploads.push({ name, url: url.href, ...(login === undefined ? {} : { login }) });
    } catch (thrown) {
      if (!(thrown instanceof GryphusError)) throw thrown;
    }
  }
  const put = uploads.length === 0 ? [] : await ctx.site.upload(key, uploads);
  for (const name of put) {
    there.add(name);
    ctx.urls.outputs.note(key, destination(files, name));
  }
  return outputs.filter((name) => !there.has(name));
}
