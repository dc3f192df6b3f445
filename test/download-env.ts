/**
 * With NODE_EXTRA_CA_CERTS, each start of Node parses all certificates (80 ms), and the tests start Node thousands of times: what they
 * start does not get it, except what downloads.
 */
const NAME = 'NODE_EXTRA_CA_CERTS';
const KEPT = 'GRYPHUS_TEST_EXTRA_CA_CERTS';

export function putAside(): void {
  const given = process.env[NAME];
  if (given === undefined) return;
  process.env[KEPT] = given;
  delete process.env[NAME];
}

/** The file that NODE_EXTRA_CA_CERTS named when the tests were started. */
export const extraCertificates = (): string | undefined => process.env[KEPT];

/** The environment of a program that downloads. */
export function downloadEnv(): NodeJS.ProcessEnv {
  const file = extraCertificates();
  return file === undefined ? process.env : { ...process.env, [NAME]: file };
}
