import { readString, type TextSource } from './values.ts';

/**
 * Which GridManager handles a job: one process per owner and credential identity (Condor-G, section 4), so that
 * problems of one do not affect another. The text is safe as a file name and as a process argument.
 */
export function managerIdentity(owner: string, credential: string | undefined): string {
  return credential === undefined ? encode(owner) : `${encode(owner)}+${encode(credential)}`;
}

/** The identity of the GridManager that handles the job at this site. */
export function managerOf(
  { attrs }: { readonly attrs: TextSource },
  site: { readonly credential?: string | undefined },
): string {
  const subject = readString(attrs, 'x509UserProxySubject');
  return managerIdentity(readString(attrs, 'Owner') ?? '', subject ?? site.credential);
}

function encode(text: string): string {
  return encodeURIComponent(text).replaceAll('*', '%2A').replaceAll("'", '%27');
}
