import { GryphusError } from '../errors.ts';
import { crashPoint } from '../util/crash-point.ts';
import type { JobManagerContext } from './site-context.ts';

/** If the key is replaced between request and answer, both are made again. */
const ROUNDS = 3;
const MS = 60_000;

/** The site makes (or already has) a key and a request, `sign` answers the request, and the site installs the proxy. */
export async function delegate(
  site: JobManagerContext,
  name: string,
  sign: (requestPem: string) => Promise<string>,
): Promise<void> {
  for (let round = 1; ; round++) {
    crashPoint('jm.before-delegate');
    const asked = await site.session.exchange('csr', [name], [], MS);
    const request = asked.lines.find((line) => line.kind === 'data')?.bytes;
    if (asked.status !== 0 || request === undefined) throw refused(site.name, asked.status);
    const answer = await sign(request.toString('latin1'));
    const { status } = await site.session.exchange('proxy', [name, answer], [], MS);
    crashPoint('jm.after-delegate');
    if (status === 0) return;
    if (status !== 65 || round === ROUNDS) throw refused(site.name, status);
  }
}

function refused(site: string, status: number): GryphusError {
  switch (status) {
    case 69:
      return new GryphusError('missing-program', `There is no openssl at ${site}; it is needed to delegate a proxy.`, {
        suggestions: ["Have it installed there, or put it in the PATH with the site's `prelude`."],
      });
    case 74:
      return new GryphusError('disk-full', `${site} could not write the proxy (disk or quota full?).`);
    default:
      return new GryphusError('protocol-error', `${site} did not accept the proxy (status ${status}).`);
  }
}
