/**
 * Which GridManager handles a job: one process per owner and credential identity (Condor-G, section 4), so that
 * problems of one do not affect another. The text is safe as a file name and as a process argument.
 */
export function managerIdentity(owner: string, credential: string | undefined): string {
  return credential === undefined ? encode(owner) : `${encode(owner)}+${encode(credential)}`;
}

function encode(text: string): string {
  return encodeURIComponent(text).replaceAll('*', '%2A').replaceAll("'", '%27');
}
