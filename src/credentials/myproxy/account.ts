/** Where a long proxy is kept, and how we show that it is ours. */
export interface MyProxyAccount {
  readonly host: string;
  /** Default 7512. */
  readonly port?: number;
  readonly user: string;
  /** One of several credentials of that user. */
  readonly credentialName?: string;
  /** `/O=Grid/CN=…` of the server, where its name is not its host's. */
  readonly serverDn?: string;
  /** A 0600 file with the passphrase in its first line; without it, the old proxy proves who asks. */
  readonly passphraseFile?: string;
  /** Certificate and key of a service that may renew (the server's `authorized_renewers`); without it, the old proxy asks itself. */
  readonly renewer?: { readonly cert: string; readonly key: string };
  /** Directory of the authorities that we believe, as X509_CERT_DIR. */
  readonly trust: string;
}
