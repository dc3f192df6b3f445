import { readFileSync, statSync } from 'node:fs';
import ssh2, { type ParsedKey } from 'ssh2';
import { asError, GryphusError } from '../errors.ts';
import { readText } from './certificate-files.ts';
import { WireReader } from '../util/ssh-wire.ts';

/** A private key file; its public half is undefined if it cannot be read without the passphrase. */
export interface KeyFile {
  readonly path: string;
  readonly text: string;
  readonly encrypted: boolean;
  readonly blob: Buffer | undefined;
}

/** Reads a private key file; undefined if it is missing; a string explains why it is unusable. */
export function readKeyFile(path: string): KeyFile | string | undefined {
  let text: string;
  try {
    const found = statSync(path);
    if (found.uid === process.getuid?.() && (found.mode & 0o077) !== 0) {
      return `${path}: others can read it (chmod 600 it)`;
    }
    text = readFileSync(path, 'latin1');
  } catch (thrown) {
    const error = asError(thrown) as NodeJS.ErrnoException;
    return error.code === 'ENOENT' || error.code === 'ENOTDIR' ? undefined : `${path}: ${error.message}`;
  }
  const key = ssh2.utils.parseKey(text);
  if (!(key instanceof Error)) {
    return key.isPrivateKey() ? { path, text, encrypted: false, blob: key.getPublicSSH() } : publicOnly(path, key);
  }
  if (!/passphrase/i.test(key.message)) return `${path}: ${key.message}`;
  return { path, text, encrypted: true, blob: opensshPublic(text) ?? publicBeside(path) };
}

/** IdentityFile may name a public key whose private half an agent holds. */
function publicOnly(path: string, key: ParsedKey): KeyFile {
  return { path, text: '', encrypted: false, blob: key.getPublicSSH() };
}

/** The unencrypted public key in a key file of OpenSSH's own format (PROTOCOL.key). */
function opensshPublic(text: string): Buffer | undefined {
  const body = /-----BEGIN OPENSSH PRIVATE KEY-----([A-Za-z0-9+/=\s]+)-----END/.exec(text)?.[1];
  if (body === undefined) return undefined;
  const bytes = Buffer.from(body, 'base64');
  const magic = 'openssh-key-v1\0';
  if (bytes.toString('latin1', 0, magic.length) !== magic) return undefined;
  const reader = new WireReader(bytes.subarray(magic.length));
  for (let skipped = 0; skipped < 3; skipped++) reader.string();
  reader.uint32();
  return reader.string();
}

function publicBeside(path: string): Buffer | undefined {
  const line = readText(`${path}.pub`);
  const base64 = line?.trim().split(/\s+/)[1];
  return base64 === undefined ? undefined : Buffer.from(base64, 'base64');
}

/** Decrypted private keys, in memory only, so that a process asks for each passphrase once. */
export class OpenedKeys {
  readonly #keys = new Map<string, ParsedKey>();

  /**
   * The private key of a file; for an encrypted one, `ask` is called, and after a wrong answer again (three times in
   * all).
   */
  async open(file: KeyFile, ask: (question: string) => Promise<string | undefined>): Promise<ParsedKey> {
    const known = this.#keys.get(file.text);
    if (known !== undefined) return known;
    for (let tries = 0; tries < 3; tries++) {
      const passphrase = file.encrypted ? await ask(`Passphrase of ${file.path}: `) : undefined;
      if (file.encrypted && passphrase === undefined) break;
      const key = ssh2.utils.parseKey(file.text, passphrase);
      if (!(key instanceof Error)) {
        this.#keys.set(file.text, key);
        return key;
      }
      if (!file.encrypted) throw key;
    }
    throw new GryphusError('needs-login', `The key ${file.path} is encrypted, and no passphrase was given.`, {
      suggestions: ['Add the key to an agent (ssh-add), or type the passphrase: gryphus site login.'],
    });
  }
}
