/** Where a long-lived proxy is stored, and how we prove that it is ours. */
export interface MyProxyAccount {
  readonly host: string;
  /** 7512 by default. */
  readonly port?: number;
  readonly user: string;
  /** Selects one of several credentials of that user. */
  readonly credentialName?: string;
  /** The server's DN, `/O=Grid/CN=…`, if it does not match the host name. */
  readonly serverDn?: string;
  /** A 0600 file with the passphrase in its first line; without it, the old proxy proves who we are. */
  readonly passphraseFile?: string;
  /**
   * Certificate and key of a service that may renew (the server's `authorized_renewers`); without it, the old proxy is
   * used.
   */
  readonly renewer?: { readonly cert: string; readonly key: string };
  /** The directory of trusted authorities, as X509_CERT_DIR. */
  readonly trust: string;
}
