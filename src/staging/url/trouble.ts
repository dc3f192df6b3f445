import { asError, GryphusError } from '../../errors.ts';
import { netrcLine, withoutLogin } from './file-url.ts';

export type TransferDirection = 'fetch' | 'store';

/** The server did not answer, broke off, or says that it cannot answer now. */
export function unreachable(url: URL, why: string, cause?: unknown): GryphusError {
  return new GryphusError('url-unreachable', `${shown(url)} cannot be reached now: ${why}.`, {
    ...(cause === undefined ? {} : { cause }),
    suggestions: ['It is retried automatically; check whether the server is running.'],
  });
}

/** The server gave a refusal that will not change by itself. */
export function refused(url: URL, direction: TransferDirection, message: string): GryphusError {
  if (direction === 'store') {
    return new GryphusError('output-unwritable', `${shown(url)} did not accept the output: ${message}.`, {
      suggestions: ['Fix that, then `gryphus release` the job: its results wait at the site.'],
    });
  }
  return new GryphusError('input-missing', `The input ${shown(url)} could not be downloaded: ${message}.`, {
    suggestions: ['Fix that (or correct the URL with `gryphus edit`), then `gryphus release` the job.'],
  });
}

/** The log-in is missing or wrong. */
export function needsLogin(url: URL, direction: TransferDirection, had: boolean, message: string): GryphusError {
  const why = had
    ? `the log-in from netrc for ${url.hostname} is refused (${message})`
    : `it requires a log-in (${message})`;
  const error = refused(url, direction, why);
  const remedy = had ? 'Correct it there' : `For a log-in ${netrcLine(url.hostname).replace(/\.$/, '')}`;
  return new GryphusError(error.code, error.message, {
    suggestions: [`${remedy}, then \`gryphus release\` the job.`],
  });
}

/** The proxy has expired; what was transferred before is kept. `end`: Unix seconds. */
export function proxyEnded(url: URL, direction: TransferDirection, file: string, end: number): GryphusError {
  const at = new Date(end * 1000).toISOString().replace(/\.\d+Z$/, 'Z');
  const error = refused(url, direction, `the proxy ${file} ended at ${at}`);
  return new GryphusError(error.code, error.message, {
    suggestions: [
      'Renew it (`gryphus cred proxy init`), then `gryphus release` the job: it continues where it stopped.',
    ],
  });
}

const NEVER: ReadonlySet<string> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_GET_ISSUER_CERT',
  'CERT_HAS_EXPIRED',
  'ERR_TLS_CERT_ALTNAME_INVALID',
]);

/**
 * The meaning of a failed connection: waiting does not help with an untrusted certificate, but may with anything else.
 */
export function ofConnection(url: URL, direction: TransferDirection, thrown: unknown): GryphusError {
  if (thrown instanceof GryphusError) return thrown;
  const error: NodeJS.ErrnoException = asError(thrown);
  if (error.code !== undefined && NEVER.has(error.code)) {
    const found = refused(url, direction, `the certificate of ${url.hostname} is not trusted (${error.message})`);
    return new GryphusError(found.code, found.message, {
      cause: error,
      suggestions: ['Name its authority in config.toml: [urls] ca = "/path/ca.pem"', ...found.suggestions],
    });
  }
  return unreachable(url, error.message || error.code || 'the connection was lost', error);
}

function shown(url: URL): string {
  return withoutLogin(url.href);
}
