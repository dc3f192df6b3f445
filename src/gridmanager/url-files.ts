import { sharesHome } from '../config/sites.ts';
import { readString } from '../job/values.ts';
import type { JobRecord } from '../queue/api.ts';
import type { InputFile, SiteFile } from '../site/contract.ts';
import { fileNameOf, isUrl, parseFileUrl, PLAIN_SCHEMES, schemeOf } from '../staging/url/file-url.ts';
import type { SiteContext } from './context.ts';
import { jobFiles } from './files.ts';

/**
 * Maps each URL among the job's inputs to the file it will be. If one is still being fetched, returns a message saying
 * which; the submit loop is woken when it has arrived. Rejects with the error of a URL that cannot be fetched.
 */
export async function urlInputs(ctx: SiteContext, job: JobRecord): Promise<ReadonlyMap<string, InputFile> | string> {
  const files = new Map<string, InputFile>();
  let coming: string | undefined;
  for (const text of jobFiles(job.attrs, sharesHome(ctx.record)).inputs.filter(isUrl)) {
    const url = parseFileUrl(text, ctx.urls.access.schemes);
    const name = fileNameOf(url);
    const file = isForTheSite(ctx, url) ? ({ kind: 'url', url: url.href } as const) : await here(ctx, job, text);
    if (typeof file === 'string') coming ??= file;
    else files.set(text, { kind: 'file', name, file, executable: false });
  }
  return coming ?? files;
}

/** The site fetches public URLs itself, if the user says that its nodes can. */
function isForTheSite({ record, urls }: SiteContext, url: URL): boolean {
  return record.urls === 'direct' && PLAIN_SCHEMES.includes(schemeOf(url)) && !urls.access.hasLogin(url);
}

async function here(ctx: SiteContext, job: JobRecord, url: string): Promise<SiteFile | string> {
  const found = ctx.urls.inputs.look(url, readString(job.attrs, 'x509userproxy'), () => ctx.wake('submit'));
  if (found.is === 'refused') throw found.error;
  return found.is === 'coming' ? found.why : { kind: 'blob', blob: await ctx.blobs.blobOf(found.path) };
}
