/** The GRAM error numbers that we act on (`globus_gram_protocol_error_t`). */
export const GRAM_ERROR = {
  userCancelled: 8,
  queryDenied: 94,
  waitingForCommit: 110,
  commitTimedOut: 111,
  noStateFile: 121,
  oldManagerAlive: 124,
  managerStopped: 130,
  proxyExpired: 131,
  contactNotFound: 156,
} as const;

const WORDS: Readonly<Record<number, string>> = {
  1: 'one of the RSL parameters is not supported',
  2: 'the RSL length is greater than the maximum allowed',
  3: 'an I/O operation failed',
  4: 'jobmanager unable to set default to the directory requested',
  5: 'the executable does not exist',
  7: 'authentication with the remote server failed',
  8: 'the user cancelled the job',
  9: 'the system cancelled the job',
  10: 'data transfer to the server failed',
  12: 'the connection to the server failed',
  17: 'the job failed when the job manager attempted to run it',
  18: 'an invalid paradyn port',
  22: 'the job manager failed to create an internal script argument file',
  24: 'the job manager detected an invalid script response',
  29: 'no proxy was delegated',
  32: 'the job manager could not create temporary files',
  37: 'the provided RSL maximum time was invalid',
  43: 'the job manager failed to stage the executable',
  44: 'the job manager failed to stage the stdin file',
  46: 'the provided RSL count value is invalid',
  48: 'the provided RSL string could not be parsed',
  73: 'the job manager failed to open stdout',
  74: 'the job manager failed to open stderr',
  79: 'the job manager could not be contacted',
  92: 'the query was not understood',
  93: 'the gatekeeper does not know the service',
  94: 'the query was denied',
  110: 'the job manager is waiting for a commit signal',
  111: 'the job manager timed out while waiting for a commit signal',
  121: 'the job state file does not exist',
  122: 'the job state file cannot be read',
  124: 'the old job manager is still alive',
  130: 'the job manager was sent a stop signal (job is still running)',
  131: 'the user proxy expired (job is still running)',
  140: 'an RSL attribute is not possible in this place',
  155: 'the job manager could not stage out a file',
  156: 'the job contact string does not match any which the job manager is handling',
  158: 'the user proxy is too short',
  161: 'the job manager is still streaming output',
};

/** The protocol's text for an error number. */
export function gramMessage(code: number): string {
  const message = WORDS[code];
  return message === undefined ? `GRAM error ${code}` : `${message} (GRAM error ${code})`;
}

/** The site could not fetch from us, or not send to us, what the job needs; the job itself is not at fault. */
export const STAGING_IN: ReadonlySet<number> = new Set([10, 12, 43, 44, 135]);
export const STAGING_OUT: ReadonlySet<number> = new Set([73, 74, 155]);
