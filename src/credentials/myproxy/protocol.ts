import { GryphusError } from '../../errors.ts';

/**
 * MyProxy protocol version 2 (MyProxy's protocol document): requests and responses are lines of text ended by a NUL.
 */
export const COMMAND = { get: 0, put: 1, info: 2, destroy: 3, change: 4 } as const;

export interface Request {
  readonly command: keyof typeof COMMAND;
  readonly user: string;
  readonly passphrase?: Uint8Array;
  readonly newPassphrase?: Uint8Array;
  /** In seconds: for the requested proxy or, when storing, the longest that may later be requested. */
  readonly lifetime: number;
  /** Any other protocol fields, by name. */
  readonly fields?: Readonly<Record<string, string>>;
}

/** The request's bytes. They contain the passphrase, so the caller wipes them. */
export function encodeRequest(request: Request): Buffer {
  const line = (name: string, value: Uint8Array) => {
    if (value.some((byte) => byte === 10 || byte === 13 || byte === 0)) {
      throw new GryphusError('bad-input', `MyProxy's ${name} cannot contain a line break.`);
    }
    return [Buffer.from(`${name}=`), value, Buffer.from('\n')];
  };
  const text = (name: string, value: string) => line(name, Buffer.from(value));
  return Buffer.concat([
    Buffer.from('VERSION=MYPROXYv2\n'),
    ...text('COMMAND', String(COMMAND[request.command])),
    ...text('USERNAME', request.user),
    ...line('PASSPHRASE', request.passphrase ?? new Uint8Array()),
    ...(request.newPassphrase === undefined ? [] : line('NEW_PHRASE', request.newPassphrase)),
    ...text('LIFETIME', String(Math.floor(request.lifetime))),
    ...Object.entries(request.fields ?? {}).flatMap(([name, value]) => text(name, value)),
    Buffer.from([0]),
  ]);
}

export interface Response {
  readonly kind: 'ok' | 'error' | 'authorization';
  /** The server's error messages. */
  readonly errors: readonly string[];
  /** The challenge by kind: `X509_certificate_SHA256` and others. */
  readonly challenges: ReadonlyMap<string, string>;
  readonly stored: readonly StoredCredential[];
}

/** What `myproxy-info` shows about one credential; times are in Unix seconds. */
export interface StoredCredential {
  /** Empty for the user's only or default credential. */
  readonly name: string;
  readonly owner: string | undefined;
  readonly start: number | undefined;
  readonly end: number | undefined;
  readonly renewer: string | undefined;
  readonly retriever: string | undefined;
}

const KINDS = ['ok', 'error', 'authorization'] as const;
const CRED = /^CRED_(?:(.*)_)?(NAME|START_TIME|END_TIME|OWNER|RENEWER|RETRIEVER)$/;

/** Parses a response without its NUL; `undefined` if it is malformed. */
export function parseResponse(text: string): Response | undefined {
  const lines = text.split('\n').filter((line) => line !== '');
  if (!lines[0]?.startsWith('VERSION=MYPROXYv2')) return undefined;
  const pairs = lines.map((line): [string, string] => {
    const at = line.indexOf('=');
    return at === -1 ? ['ERROR', line] : [line.slice(0, at), line.slice(at + 1)];
  });
  const kind = KINDS[Number(pairs.find(([name]) => name === 'RESPONSE')?.[1] ?? Number.NaN)];
  if (kind === undefined) return undefined;
  const challenges = pairs
    .filter(([name]) => name === 'AUTHORIZATION_DATA')
    .map(([, value]): [string, string] => [value.split(':', 1)[0] ?? '', value.slice(value.indexOf(':') + 1)]);
  return {
    kind,
    errors: pairs.filter(([name]) => name === 'ERROR').map(([, value]) => value),
    challenges: new Map(challenges),
    stored: readStored(pairs),
  };
}

/**
 * The fields of the first credential are `CRED_OWNER`…; those of the others, named in `ADDL_CREDS`,
 * `CRED_<name>_OWNER`….
 */
function readStored(pairs: readonly (readonly [string, string])[]): readonly StoredCredential[] {
  const groups = new Map<string, Map<string, string>>();
  for (const [name, value] of pairs) {
    const found = CRED.exec(name);
    if (!found?.[2]) continue;
    const group = groups.get(found[1] ?? '') ?? new Map<string, string>();
    groups.set(found[1] ?? '', group.set(found[2], value));
  }
  const seconds = (text: string | undefined) =>
    text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
  return [...groups].map(([name, fields]) => ({
    name: fields.get('NAME') ?? name,
    owner: fields.get('OWNER'),
    start: seconds(fields.get('START_TIME')),
    end: seconds(fields.get('END_TIME')),
    renewer: fields.get('RENEWER'),
    retriever: fields.get('RETRIEVER'),
  }));
}
