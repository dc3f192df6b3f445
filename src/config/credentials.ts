import { existsSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { MyProxyAccount } from '../credentials/myproxy-account.ts';
import type { Renewer, Source as Credential } from '../credentials/sources.ts';
import { defaultFiles } from '../credentials/store.ts';
import { DEFAULT_WATCH, type WatchConfig } from '../credentials/watch/model.ts';
import { asError, GryphusError } from '../errors.ts';
import { oneLine } from '../util/plain-text.ts';
import { duration, integer, moment, oneOf, path, text } from './kinds.ts';
import type { Paths } from './paths.ts';
import type { Settings } from './settings.ts';
import { entry, readTable, type Source, type Values } from './table.ts';
import { parseToml, readSource } from './toml.ts';

const KINDS = ['x509-proxy', 'ssh-certificate', 'ssh-key', 'allocation', 'account'] as const;

/** Every key of `credentials/<name>.toml`. Times are seconds, once read. */
export const CREDENTIAL_KEYS = {
  kind: entry(oneOf(KINDS), undefined, 'The kind of credential.'),
  file: entry(path, undefined, 'The proxy, the certificate (`id_x-cert.pub`, its key beside it) or the key.'),
  lifetime: entry(duration, undefined, 'How long an `ssh-key` is valid after its file was written.'),
  until: entry(moment, undefined, 'When an `ssh-key`, an `allocation` or an `account` ends.'),
  renew_command: entry(text, undefined, 'A command that renews the file, run by `/bin/sh`; its output is discarded.'),
  renew_timeout: entry(duration, '2m', 'Time limit of the renewal.'),
  'myproxy.host': entry(text, undefined, 'The MyProxy server that an `x509-proxy` is renewed from.'),
  'myproxy.port': entry(integer(1, 65_535), 7512, 'Its port.'),
  'myproxy.server_dn': entry(text, undefined, 'Subject of its certificate, if that does not name the host.'),
  'myproxy.user': entry(text, undefined, 'Name that the proxy is stored under; default: your log-in name.'),
  'myproxy.credential_name': entry(text, undefined, 'Which of several credentials of that name.'),
  'myproxy.passphrase_file': entry(
    path,
    undefined,
    'A file (mode 0600) with its passphrase on the first line; default: authenticate with the old proxy.',
  ),
  'myproxy.renewer_cert': entry(path, undefined, 'Certificate of a service that may renew.'),
  'myproxy.renewer_key': entry(path, undefined, 'Its key.'),
  'myproxy.trust': entry(path, undefined, 'Directory of trusted authorities; default: as X509_CERT_DIR.'),
  'myproxy.lifetime': entry(duration, '12h', 'Lifetime of the proxies that are fetched.'),
} as const;

export interface Credentials {
  readonly good: ReadonlyMap<string, Credential>;
  /** Why a credential's file cannot be read, by its name: one sentence each. */
  readonly bad: ReadonlyMap<string, string>;
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** The settings of the watch over credentials. */
export function watchConfig(settings: Pick<Settings, 'alarms.credential' | 'alarms.hold_before_end'>): WatchConfig {
  return {
    ...DEFAULT_WATCH,
    alarms: settings['alarms.credential'],
    holdBefore: settings['alarms.hold_before_end'],
  };
}

/** The file that describes the credential of this name, if it exists. */
export function credentialFile(paths: Pick<Paths, 'configDir'>, name: string): string {
  return join(paths.configDir, 'credentials', `${name}.toml`);
}

/** All described credentials; an invalid file does not affect the others. */
export async function loadCredentials(paths: Pick<Paths, 'configDir'>): Promise<Credentials> {
  const good = new Map<string, Credential>();
  const bad = new Map<string, string>();
  const dir = join(paths.configDir, 'credentials');
  const files = existsSync(dir) ? readdirSync(dir).filter((file) => file.endsWith('.toml')) : [];
  for (const name of files.map((file) => file.slice(0, -'.toml'.length)).sort()) {
    try {
      good.set(name, await loadCredential(paths, name));
    } catch (thrown) {
      bad.set(name, oneLine(asError(thrown).message));
    }
  }
  return { good, bad };
}

/** Reads one credential; a GryphusError 'bad-config' names the file, the line and the remedy. */
export async function loadCredential(paths: Pick<Paths, 'configDir'>, name: string): Promise<Credential> {
  if (!NAME.test(name)) {
    throw new GryphusError('bad-input', `'${oneLine(name)}' cannot be the name of a credential.`, {
      suggestions: ['Use up to 64 letters, digits, dots, dashes and underscores, a letter or digit first.'],
    });
  }
  const file = credentialFile(paths, name);
  if (!existsSync(file)) {
    throw new GryphusError('not-found', `There is no credential '${name}'.`, {
      suggestions: [`Describe it in ${file}; \`gryphus cred list\` lists the existing ones.`],
    });
  }
  const source = readSource(file, paths);
  return credentialOf(name, readTable(CREDENTIAL_KEYS, await parseToml(source), source), source);
}

function credentialOf(name: string, v: Values<typeof CREDENTIAL_KEYS>, source: Source): Credential {
  const needs = (key: 'kind' | 'file' | 'until', why: string) =>
    new GryphusError('bad-config', `${source.file}: '${key}' is missing${why}.`, {
      suggestions: [`Add a line \`${key} = …\`: ${CREDENTIAL_KEYS[key].doc}`],
    });
  const { kind } = v;
  if (kind === undefined) throw needs('kind', `; it is one of ${KINDS.map((one) => `"${one}"`).join(', ')}`);
  if (kind === 'allocation' || kind === 'account') {
    if (v.until === undefined) throw needs('until', `, which is all that an ${kind} has`);
    return { name, kind, until: v.until };
  }
  if (v.file === undefined) throw needs('file', '');
  const file = atHome(v.file);
  const renewal = renewalOf(v, source);
  const base = { name, file, ...(renewal === undefined ? {} : { renewal }) };
  if (kind === 'ssh-certificate' && !file.endsWith('-cert.pub')) {
    throw new GryphusError('bad-config', `${source.file}: the file of an ssh-certificate must end with -cert.pub.`, {
      suggestions: ['Name the certificate; its key is beside it, without -cert.pub.'],
    });
  }
  if (kind !== 'ssh-key') return { kind, ...base };
  return {
    kind,
    ...base,
    ...(v.lifetime === undefined ? {} : { lifetime: v.lifetime }),
    ...(v.until === undefined ? {} : { until: v.until }),
  };
}

function renewalOf(v: Values<typeof CREDENTIAL_KEYS>, source: Source): Renewer | undefined {
  const host = v['myproxy.host'];
  if (v.renew_command !== undefined) {
    if (host !== undefined) {
      throw new GryphusError(
        'bad-config',
        `${source.file}: it has both a renew_command and a myproxy.host; choose one.`,
      );
    }
    return { by: 'command', command: v.renew_command, timeoutMs: v.renew_timeout * 1000 };
  }
  if (host === undefined) return undefined;
  if (v.kind !== 'x509-proxy') {
    throw new GryphusError('bad-config', `${source.file}: a MyProxy server can renew only an x509-proxy.`);
  }
  return { by: 'myproxy', account: accountOf(host, v), lifetime: v['myproxy.lifetime'] };
}

function accountOf(host: string, v: Values<typeof CREDENTIAL_KEYS>): MyProxyAccount {
  const [cert, key] = [v['myproxy.renewer_cert'], v['myproxy.renewer_key']];
  const trust = v['myproxy.trust'];
  return {
    host,
    port: v['myproxy.port'],
    user: v['myproxy.user'] ?? loginName(),
    trust: trust === undefined ? defaultFiles().trust : atHome(trust),
    ...optional('serverDn', v['myproxy.server_dn']),
    ...optional('credentialName', v['myproxy.credential_name']),
    ...optional('passphraseFile', v['myproxy.passphrase_file'], atHome),
    ...(cert === undefined || key === undefined ? {} : { renewer: { cert: atHome(cert), key: atHome(key) } }),
  };
}

function optional<K extends string>(
  name: K,
  value: string | undefined,
  change = (one: string) => one,
): { [k in K]?: string } {
  return value === undefined ? {} : ({ [name]: change(value) } as { [k in K]: string });
}

function loginName(): string {
  return process.env['LOGNAME'] ?? process.env['USER'] ?? 'nobody';
}

/** A path from a configuration file with `~/` expanded. */
export function atHome(file: string): string {
  return file.startsWith('~/') ? join(homedir(), file.slice(2)) : file;
}
