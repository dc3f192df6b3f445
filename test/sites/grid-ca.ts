import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Person {
  readonly dn: string;
  readonly cert: string;
  readonly key: string;
}

/** A private grid certificate authority with its directory in the grid tools' layout, created only by openssl. */
export interface GridCa {
  readonly dir: string;
  /** `X509_CERT_DIR`: `<hash>.0`, `<hash>.signing_policy`, `<hash>.r0`. */
  readonly trust: string;
  readonly caCert: string;
  readonly caKey: string;
  readonly dn: string;
  readonly hash: string;
  person(commonName: string, options?: PersonOptions): Person;
  /** `localhost`, for servers. */
  host(commonName?: string): Person;
  /** Writes `<hash>.r0`, which revokes these certificates. */
  revoke(certs: readonly string[], days?: number): void;
  /** openssl in this directory; the arguments are words. */
  openssl(args: readonly string[], input?: string): string;
  stop(): void;
}

export interface PersonOptions {
  /** For `openssl req -newkey`; default rsa:2048. */
  readonly newkey?: readonly string[];
  readonly days?: number;
  /** Encrypts the key. */
  readonly passphrase?: string;
  /** Lines of an extension file instead of a user's. */
  readonly extensions?: readonly string[];
  /** The whole subject instead of `/O=Grid/OU=Gryphus Test/CN=…`. */
  readonly subject?: string;
}

const ORGANISATION = '/O=Grid/OU=Gryphus Test';

export function makeGridCa(options: { name?: string; policy?: string | false } = {}): GridCa {
  const dir = mkdtempSync(join(tmpdir(), 'gca-'));
  const trust = join(dir, 'certificates');
  mkdirSync(trust);
  const [caCert, caKey] = [join(dir, 'ca.pem'), join(dir, 'ca.key')];
  const dn = `${ORGANISATION}/CN=${options.name ?? 'Test CA'}`;
  const openssl = (args: readonly string[], input = ''): string =>
    execFileSync('openssl', args, { cwd: dir, input, encoding: 'utf8', stdio: ['pipe', 'pipe', 'pipe'] });
  const CONSTRAINTS = [
    '-addext',
    'basicConstraints=critical,CA:TRUE',
    '-addext',
    'keyUsage=critical,keyCertSign,cRLSign',
  ];
  const selfSigned = ['-newkey', 'rsa:2048', '-nodes', '-sha256', '-days', '3650', ...CONSTRAINTS];
  openssl(['req', '-x509', '-subj', dn, '-keyout', caKey, '-out', caCert, ...selfSigned]);
  const hash = openssl(['x509', '-in', caCert, '-noout', '-subject_hash']).trim();
  copyFileSync(caCert, join(trust, `${hash}.0`));
  if (options.policy !== false) {
    const policy = options.policy ?? '"/O=Grid/*"';
    writeFileSync(
      join(trust, `${hash}.signing_policy`),
      `access_id_CA X509 '${dn}'\npos_rights globus CA:sign\ncond_subjects globus '${policy}'\n`,
    );
  }
  let count = 0;
  const issue = (subject: string, extensions: readonly string[], more: PersonOptions): Person => {
    const stem = join(dir, `person ${++count}`);
    const [key, cert, request, ext] = [`${stem}.key`, `${stem}.pem`, `${stem}.req`, `${stem}.ext`];
    writeFileSync(ext, `${extensions.join('\n')}\n`);
    const protect = more.passphrase === undefined ? ['-nodes'] : ['-passout', 'stdin'];
    const newkey = ['-newkey', ...(more.newkey ?? ['rsa:2048'])];
    const secret = more.passphrase === undefined ? '' : `${more.passphrase}\n`;
    openssl(['req', '-new', ...newkey, ...protect, '-subj', subject, '-keyout', key, '-out', request], secret);
    const authority = ['-CA', caCert, '-CAkey', caKey, '-set_serial', String(1000 + count), '-sha256'];
    openssl([
      'x509',
      '-req',
      '-in',
      request,
      ...authority,
      '-days',
      String(more.days ?? 3650),
      '-out',
      cert,
      '-extfile',
      ext,
    ]);
    chmodSync(key, 0o600);
    return { dn: subject, cert, key };
  };
  return {
    dir,
    trust,
    caCert,
    caKey,
    dn,
    hash,
    openssl,
    person: (name, more = {}) =>
      issue(more.subject ?? `${ORGANISATION}/CN=${name}`, more.extensions ?? USER_EXTENSIONS, more),
    host: (name = 'localhost') =>
      issue(`${ORGANISATION}/CN=${name}`, [...HOST_EXTENSIONS, `subjectAltName=DNS:${name}`], {}),
    revoke(certs, days = 30) {
      const [index, config] = [join(dir, 'index'), join(dir, 'crl.cnf')];
      writeFileSync(index, '');
      writeFileSync(config, `[ca]\ndefault_ca=d\n[d]\ndatabase=${index}\ndefault_md=sha256\n`);
      const authority = ['-config', config, '-cert', caCert, '-keyfile', caKey];
      for (const cert of certs) openssl(['ca', ...authority, '-revoke', cert]);
      openssl(['ca', ...authority, '-gencrl', '-crldays', String(days), '-out', join(trust, `${hash}.r0`)]);
    },
    stop: () => rmSync(dir, { recursive: true, force: true }),
  };
}

const USER_EXTENSIONS = [
  'basicConstraints=critical,CA:FALSE',
  'keyUsage=critical,digitalSignature,nonRepudiation,keyEncipherment',
  'extendedKeyUsage=clientAuth',
];
const HOST_EXTENSIONS = [
  'basicConstraints=critical,CA:FALSE',
  'keyUsage=critical,digitalSignature,keyEncipherment',
  'extendedKeyUsage=serverAuth,clientAuth',
];

/** The environment for Globus' and VOMS' tools: only what is given (as root they would prefer X509_USER_CERT). */
export function gridEnv(ca: GridCa, more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const env = Object.entries(process.env).filter(([name]) => !name.startsWith('X509_') && !name.startsWith('MYPROXY'));
  return { ...Object.fromEntries(env), X509_CERT_DIR: ca.trust, HOME: ca.dir, ...more };
}

export const bytesOf = (path: string): Buffer => readFileSync(path);
