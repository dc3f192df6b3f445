import { join } from 'node:path';
import type { AttemptSpool } from '../staging/streams.ts';
import type { SiteContext } from './context.ts';
import type { ManagerOptions } from './manager.ts';
import { GrowingOutputs } from './streaming/growing.ts';
import { UrlInputs } from './url-inputs.ts';
import { UrlOutputs } from './url-outputs.ts';

/** What all sites of one manager share of its access to URLs. */
export function openUrls(
  options: Pick<ManagerOptions, 'spoolDir' | 'identity' | 'urls' | 'streamEveryMs' | 'log'>,
  spool: AttemptSpool,
  now: () => number,
): SiteContext['urls'] {
  const { spoolDir, identity, urls: access, streamEveryMs, log } = options;
  const outputs = new UrlOutputs(access, now);
  return {
    access,
    inputs: new UrlInputs(join(spoolDir, '.urls', identity), access, now),
    outputs,
    growing: new GrowingOutputs({ spool, outputs, directory: join(spoolDir, '.parts'), everyMs: streamEveryMs, log }),
  };
}

export async function closeUrls({ inputs, outputs, growing }: SiteContext['urls']): Promise<void> {
  outputs.close();
  await growing.close();
  await inputs.close();
}
