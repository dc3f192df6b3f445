import { agentIdentities, agentSign } from './ssh-agent.ts';
import { type CertificateFile, readCertificateFile } from './certificate-files.ts';
import { type KeyFile, type OpenedKeys, readKeyFile } from './key-files.ts';
import { parseCertificate, type SshCertificate } from '../util/ssh-certificate.ts';
import { type Signer, signWith } from './ssh2-signer.ts';
import type { SshSettings } from './ssh-settings.ts';

/** A public key log-in to try. */
export interface LoginKey {
  /** For messages: a file, or `agent: comment`. */
  readonly name: string;
  /** Undefined for an old encrypted PEM file without a `.pub` file: `reveal` asks for its passphrase. */
  readonly blob: Buffer | undefined;
  reveal(): Promise<Buffer>;
  readonly sign: Signer['sign'];
}

export interface LoginKeys {
  /** In the order in which to try them. */
  readonly keys: readonly LoginKey[];
  /** Expired certificates, with their file and end. */
  readonly expired: readonly { readonly name: string; readonly end: Date }[];
  /** Unusable key files, with the reason. */
  readonly unusable: readonly string[];
}

/**
 * The keys that may be accepted: the agent's keys that the configuration names, the configured key files (each preceded
 * by its certificate), the agent's other keys, the default key files. Servers limit the number of refused keys
 * (MaxAuthTries, 6 by default), so those that the user named come early. `now` is in milliseconds since 1970.
 */
export async function loginKeys(
  settings: SshSettings,
  opened: OpenedKeys,
  ask: (question: string) => Promise<string | undefined>,
  now: number,
): Promise<LoginKeys> {
  const unusable: string[] = [];
  const expired: { name: string; end: Date }[] = [];
  const files: { key: KeyFile; explicit: boolean }[] = [];
  for (const { path, explicit } of settings.identityFiles) {
    const key = readKeyFile(path);
    if (typeof key === 'string') unusable.push(key);
    else if (key !== undefined) files.push({ key, explicit });
    else if (explicit) unusable.push(`${path}: no such file`);
  }
  const socket = settings.agent;
  const inAgent = socket === undefined ? [] : await agentIdentities(socket).catch(() => []);
  const fromAgent: LoginKey[] = inAgent.map(({ blob, comment }) => ({
    name: `agent: ${comment}`,
    blob,
    reveal: async () => blob,
    sign: (data) => agentSign(socket ?? '', blob, data),
  }));

  const over = (name: string, certificate: SshCertificate): boolean => {
    const end = certificate.validBefore;
    if (end === undefined || Math.floor(now / 1000) < end) return false;
    expired.push({ name, end: new Date(end * 1000) });
    return true;
  };
  const ofFile = (key: KeyFile): LoginKey[] => {
    if (key.text === '') return [];
    return [
      {
        name: key.path,
        blob: key.blob,
        reveal: async () => (await opened.open(key, ask)).getPublicSSH(),
        sign: async (data) => signWith(await opened.open(key, ask), data),
      },
    ];
  };
  const certified = (certificate: CertificateFile, holders: readonly LoginKey[]): LoginKey[] => {
    const holder = holders.find(({ blob }) => blob?.equals(certificate.certificate.publicKey));
    if (holder === undefined || over(certificate.path, certificate.certificate)) return [];
    // An agent that holds only the plain key signs with it, since the certificate is for the same key.
    const { blob } = certificate;
    return [{ name: certificate.path, blob, reveal: async () => blob, sign: (data) => holder.sign(data) }];
  };

  const explicitCertificates = settings.certificateFiles.flatMap((path) => readCertificateFile(path) ?? []);
  const allHolders = [...files.flatMap(({ key }) => ofFile(key)), ...fromAgent];
  const fileKeys = (wanted: boolean): LoginKey[] =>
    files
      .filter(({ explicit }) => explicit === wanted)
      .sort((a, b) => Number(a.key.encrypted) - Number(b.key.encrypted))
      .flatMap(({ key }) => {
        const beside = readCertificateFile(`${key.path}-cert.pub`);
        return [...(beside === undefined ? [] : certified(beside, allHolders)), ...ofFile(key)];
      });
  const named = (key: LoginKey): boolean => {
    const plain = certificateOf(key)?.publicKey ?? key.blob;
    return files.some((file) => file.explicit && plain !== undefined && file.key.blob?.equals(plain));
  };
  const usable = fromAgent.filter((key) => {
    const certificate = certificateOf(key);
    return certificate === undefined || !over(key.name, certificate);
  });
  const ordered = [
    ...explicitCertificates.flatMap((certificate) => certified(certificate, allHolders)),
    ...usable.filter(named),
    ...fileKeys(true),
    ...(settings.identitiesOnly ? [] : usable.filter((key) => !named(key))),
    ...fileKeys(false),
  ];
  return { keys: ordered.filter((key, index) => firstOf(ordered, key) === index), expired, unusable };
}

function firstOf(keys: readonly LoginKey[], { blob, name }: LoginKey): number {
  return keys.findIndex((other) => (blob === undefined ? other.name === name : other.blob?.equals(blob)));
}

function certificateOf({ blob }: LoginKey): SshCertificate | undefined {
  return blob === undefined ? undefined : parseCertificate(blob);
}
