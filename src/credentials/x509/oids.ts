/** The object identifiers used in the grid's certificates. */
export const OID = {
  proxyCertInfo: '1.3.6.1.5.5.7.1.14',
  /** The draft's proxyCertInfo, in "GT3" proxies from before RFC 3820. */
  draftProxyCertInfo: '1.3.6.1.4.1.3536.1.222',
  inheritAll: '1.3.6.1.5.5.7.21.1',
  independent: '1.3.6.1.5.5.7.21.2',
  /** Globus: may neither start jobs nor be delegated as a full proxy. */
  limited: '1.3.6.1.4.1.3536.1.1.1.9',
  basicConstraints: '2.5.29.19',
  keyUsage: '2.5.29.15',
  extendedKeyUsage: '2.5.29.37',
  subjectAltName: '2.5.29.17',
  issuerAltName: '2.5.29.18',
  certificatePolicies: '2.5.29.32',
  vomsAttributes: '1.3.6.1.4.1.8005.100.100.5',
  vomsFqans: '1.3.6.1.4.1.8005.100.100.4',
  commonName: '2.5.4.3',
  rsa: '1.2.840.113549.1.1.1',
  rsaSha256: '1.2.840.113549.1.1.11',
  ecdsaSha256: '1.2.840.10045.4.3.2',
  ecdsaSha384: '1.2.840.10045.4.3.3',
  ecdsaSha512: '1.2.840.10045.4.3.4',
} as const;

/** The digests of the signature algorithms that we accept; any others (MD5, SHA-1) prove nothing today. */
export const SIGNATURE_DIGEST: Readonly<Record<string, string>> = {
  [OID.rsaSha256]: 'sha256',
  '1.2.840.113549.1.1.12': 'sha384',
  '1.2.840.113549.1.1.13': 'sha512',
  [OID.ecdsaSha256]: 'sha256',
  [OID.ecdsaSha384]: 'sha384',
  [OID.ecdsaSha512]: 'sha512',
};

/** Short names in a subject, as Globus and OpenSSL's one-line form print them. */
export const NAME_WORD: Readonly<Record<string, string>> = {
  '2.5.4.3': 'CN',
  '2.5.4.4': 'SN',
  '2.5.4.5': 'serialNumber',
  '2.5.4.6': 'C',
  '2.5.4.7': 'L',
  '2.5.4.8': 'ST',
  '2.5.4.9': 'street',
  '2.5.4.10': 'O',
  '2.5.4.11': 'OU',
  '2.5.4.12': 'title',
  '2.5.4.42': 'GN',
  '0.9.2342.19200300.100.1.1': 'UID',
  '0.9.2342.19200300.100.1.25': 'DC',
  '1.2.840.113549.1.9.1': 'emailAddress',
};
