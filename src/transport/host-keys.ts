import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { GryphusError } from '../errors.ts';
import { hostKeyError } from './host-key-errors.ts';
import { hashHost, checkHostKey, type KnownHost, knownFor, parseKnownHosts } from './known-hosts.ts';
import { makeDirs } from '../util/private-file.ts';
import { isCertificateType } from '../util/ssh-certificate.ts';
import { keyType } from './public-key.ts';
import type { SshSettings } from './ssh-settings.ts';

/** The plain host key types that ssh2 can check, in order of preference; RSA only with SHA-2. */
const TYPES = ['ssh-ed25519', 'ecdsa-sha2-nistp256', 'ecdsa-sha2-nistp384', 'ecdsa-sha2-nistp521', 'ssh-rsa'] as const;
type Algorithm = Exclude<(typeof TYPES)[number], 'ssh-rsa'> | 'rsa-sha2-512' | 'rsa-sha2-256';

/** What the user's known_hosts files say about one host; read again for each connection. */
export class HostKeys {
  readonly #settings: SshSettings;
  readonly #entries: readonly KnownHost[];

  constructor(settings: SshSettings) {
    this.#settings = settings;
    this.#entries = [...settings.userKnownHosts, ...settings.globalKnownHosts].flatMap((file) =>
      existsSync(file) ? parseKnownHosts(readFileSync(file, 'utf8'), file) : [],
    );
  }

  /** Whether a certificate authority may vouch for the host. */
  get authority(): boolean {
    return knownFor(this.#entries, this.#settings.hostKeyName).authority;
  }

  /** Types already known for the host come first, so that a server with several keys presents one that we can check. */
  get algorithms(): Algorithm[] {
    const { types } = knownFor(this.#entries, this.#settings.hostKeyName);
    const known = TYPES.filter((type) => types.includes(type));
    return [...known, ...TYPES.filter((type) => !types.includes(type))].flatMap((type) =>
      type === 'ssh-rsa' ? (['rsa-sha2-512', 'rsa-sha2-256'] as const) : [type],
    );
  }

  /** The refusal of a key, or undefined if it is valid; `accept-new` records a key that is not known yet. */
  refusal(key: Buffer): GryphusError | undefined {
    const { hostKeyName, strictHostKeyChecking, userKnownHosts, hashKnownHosts } = this.#settings;
    const verdict = checkHostKey(this.#entries, hostKeyName, key, Date.now() / 1000);
    if (verdict.kind === 'known') return undefined;
    const [file] = userKnownHosts;
    // A changed key is refused under every policy.
    if (verdict.kind === 'unknown' && strictHostKeyChecking !== 'yes' && file !== undefined) {
      addKnownHost(file, hashKnownHosts ? hashHost(hostKeyName) : hostKeyName, key);
      return undefined;
    }
    return hostKeyError(verdict, hostKeyName, key, file ?? 'known_hosts', this.#settings);
  }
}

/** Appends a line to a known_hosts file; a missing file is created 0600 in a 0700 directory. */
export function addKnownHost(file: string, hosts: string, key: Buffer): void {
  if (isCertificateType(keyType(key))) return;
  makeDirs(dirname(file));
  const before = existsSync(file) ? readFileSync(file, 'utf8') : '';
  const newline = before === '' || before.endsWith('\n') ? '' : '\n';
  appendFileSync(file, `${newline}${hosts} ${keyType(key)} ${key.toString('base64')}\n`, { mode: 0o600 });
}
