import { GryphusError } from '../errors.ts';
import type { AttemptKey } from '../job/ids.ts';
import type { FetchRequest, Upload } from '../site/contract.ts';
import { isUrl, parseFileUrl, schemeOf } from '../staging/url/file-url.ts';
import type { SiteContext } from './context.ts';
import { destination, type JobFiles } from './files.ts';

/** Not FTP: a result must appear under its name only when complete, which takes more than one FTP command. */
const SCHEMES: readonly string[] = ['http', 'https'];

/**
 * Lets the site upload the named outputs that have URLs, if the user allows it (`urls = "direct"`), and returns the
 * outputs still to be fetched. What the site could not upload goes through us, and our attempt reports the error.
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
