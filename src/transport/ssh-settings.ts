import { GryphusError } from '../errors.ts';
import type { SshEndpoint } from './endpoint.ts';
import { type ConfigValues, configValues, expandTokens, withHash } from './ssh-config.ts';
import type { Directive } from './ssh-config-parser.ts';

/** How to reach a host according to ~/.ssh/config, with tokens and `~` expanded. */
export interface SshSettings {
  /** The host as the user wrote it. */
  readonly alias: string;
  readonly hostName: string;
  readonly user: string;
  readonly port: number;
  /** Key files in the order in which to try them; `explicit` if the configuration names them. */
  readonly identityFiles: readonly { readonly path: string; readonly explicit: boolean }[];
  readonly certificateFiles: readonly string[];
  readonly identitiesOnly: boolean;
  /** The agent's socket, or undefined for none. */
  readonly agent: string | undefined;
  /** `[user@]host[:port]` of each jump, the one nearest to us first. */
  readonly proxyJump: readonly string[];
  readonly proxyCommand: string | undefined;
  /** The name to look up in known_hosts, with its port unless that is 22. */
  readonly hostKeyName: string;
  readonly userKnownHosts: readonly string[];
  readonly globalKnownHosts: readonly string[];
  readonly hashKnownHosts: boolean;
  readonly strictHostKeyChecking: 'yes' | 'accept-new' | 'no';
  readonly connectTimeoutMs: number;
  readonly serverAliveIntervalMs: number;
  readonly serverAliveCountMax: number;
  /** Describes what this host needs and only the system's ssh supports. */
  readonly needsOpenssh: string | undefined;
}

/** What settings depend on besides the files. */
export interface Surroundings {
  readonly home: string;
  readonly localUser: string;
  readonly localHost: string;
  readonly uid: number;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly exec: (command: string) => boolean;
}

const DEFAULT_KEYS = ['id_rsa', 'id_ecdsa', 'id_ed25519'];
/** Unless the user's configuration says otherwise, half a minute without an answer ends a connection. */
const ALIVE_INTERVAL_S = 15;

export function sshSettings(
  endpoint: SshEndpoint,
  files: readonly (readonly Directive[])[],
  around: Surroundings,
): SshSettings {
  const localTokens = {
    d: around.home,
    i: String(around.uid),
    L: around.localHost.replace(/\..*$/s, ''),
    l: around.localHost,
  };
  const values = configValues(files, { ...endpoint, localUser: around.localUser, localTokens, exec: around.exec });
  const one = (keyword: string): string | undefined => values.get(keyword)?.[0];
  const hostName = expandTokens(one('hostname') ?? endpoint.host, { '%': '%', h: endpoint.host }, 'HostName');
  const user = one('user') ?? around.localUser;
  const port = wholeNumber(values, 'port') ?? 22;
  const alias = one('hostkeyalias');
  const tokens = withHash({
    ...localTokens,
    h: hostName,
    j: one('proxyjump') ?? '',
    k: alias ?? endpoint.host,
    n: endpoint.host,
    p: String(port),
    r: user,
    u: around.localUser,
  });
  const path = (keyword: string, text: string): string =>
    expandPath(expandTokens(text, tokens, keyword), around, keyword);
  const paths = (keyword: string, byDefault: readonly string[]): readonly string[] =>
    (values.get(keyword) ?? byDefault)
      .filter((text) => text.toLowerCase() !== 'none')
      .map((text) => path(keyword, text));

  const named = values.get('identityfile');
  const agent = one('identityagent') ?? 'SSH_AUTH_SOCK';
  const proxyCommand = notNone(one('proxycommand'));
  return {
    alias: endpoint.host,
    hostName,
    user,
    port,
    identityFiles: paths(
      'identityfile',
      DEFAULT_KEYS.map((name) => `~/.ssh/${name}`),
    ).map((file) => ({
      path: file,
      explicit: named !== undefined,
    })),
    certificateFiles: paths('certificatefile', []),
    identitiesOnly: one('identitiesonly')?.toLowerCase() === 'yes',
    agent: agentSocket(agent, around, (text) => path('identityagent', text)),
    proxyJump:
      notNone(one('proxyjump'))
        ?.split(',')
        .map((hop) => expandTokens(hop.trim(), tokens, 'ProxyJump')) ?? [],
    proxyCommand: proxyCommand === undefined ? undefined : expandTokens(proxyCommand, tokens, 'ProxyCommand'),
    hostKeyName: (alias ?? (port === 22 ? hostName : `[${hostName}]:${port}`)).toLowerCase(),
    userKnownHosts: paths('userknownhostsfile', ['~/.ssh/known_hosts', '~/.ssh/known_hosts2']),
    globalKnownHosts: paths('globalknownhostsfile', ['/etc/ssh/ssh_known_hosts', '/etc/ssh/ssh_known_hosts2']),
    hashKnownHosts: one('hashknownhosts')?.toLowerCase() === 'yes',
    strictHostKeyChecking: strictness(one('stricthostkeychecking')),
    connectTimeoutMs: 1000 * (duration(values, 'connecttimeout') ?? 30),
    serverAliveIntervalMs: 1000 * (duration(values, 'serveraliveinterval') ?? ALIVE_INTERVAL_S),
    serverAliveCountMax: wholeNumber(values, 'serveralivecountmax') ?? 3,
    needsOpenssh: onlyOpenssh(values),
  };
}

/** `user@host`, with the port unless it is 22. */
export function siteLabel(settings: SshSettings): string {
  return `${settings.user}@${settings.hostName}${settings.port === 22 ? '' : `:${settings.port}`}`;
}

/** 'ask' counts as strict: an agent that runs for days has nobody to ask. */
function strictness(word: string | undefined): SshSettings['strictHostKeyChecking'] {
  const said = word?.toLowerCase();
  if (said === 'accept-new') return 'accept-new';
  return said === 'no' || said === 'off' ? 'no' : 'yes';
}

function notNone(text: string | undefined): string | undefined {
  return text?.toLowerCase() === 'none' ? undefined : text;
}

function wholeNumber(values: ConfigValues, keyword: string): number | undefined {
  const text = values.get(keyword)?.[0];
  if (text === undefined || text.toLowerCase() === 'none') return undefined;
  if (!/^\d{1,9}$/.test(text))
    throw new GryphusError('bad-config', `ssh_config: ${keyword} "${text}" is not a number.`);
  return Number(text);
}

/** Seconds as in TIME FORMATS of sshd_config(5): `90`, `1m30s`. */
function duration(values: ConfigValues, keyword: string): number | undefined {
  const text = values.get(keyword)?.[0];
  if (text === undefined || text.toLowerCase() === 'none') return undefined;
  if (!/^(\d{1,9}[smhdw]?)+$/i.test(text))
    throw new GryphusError('bad-config', `ssh_config: ${keyword} "${text}" is not a time.`);
  const parts = [...text.toLowerCase().matchAll(/(\d+)([smhdw]?)/g)];
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * (SECONDS[unit ?? ''] ?? 1), 0);
}
const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };

/** `SSH_AUTH_SOCK` and `$NAME` are names of variables. */
function agentSocket(text: string, { env }: Surroundings, path: (text: string) => string): string | undefined {
  const name = text === 'SSH_AUTH_SOCK' ? text : /^\$([A-Za-z_][A-Za-z0-9_]*)$/.exec(text)?.[1];
  return name === undefined ? notNone(path(text)) : env[name] || undefined;
}

/** What the built-in client cannot do, and would otherwise leave out in silence. */
function onlyOpenssh(values: ConfigValues): string | undefined {
  const [criterion] = values.get('match') ?? [];
  if (criterion !== undefined) return `Match ${criterion}`;
  const on = (keyword: string): boolean => {
    const value = values.get(keyword)?.[0]?.toLowerCase();
    return value !== undefined && value !== 'none' && value !== 'no';
  };
  return ['PKCS11Provider', 'CanonicalizeHostname', 'KnownHostsCommand', 'RevokedHostKeys'].find((keyword) =>
    on(keyword.toLowerCase()),
  );
}

/** Expands `~/` and `${NAME}` in a file name. */
function expandPath(text: string, around: Surroundings, keyword: string): string {
  const withEnv = text.replace(/\$\{([^}]*)\}/g, (_, name: string) => {
    const value = around.env[name];
    if (value === undefined)
      throw new GryphusError('bad-config', `ssh_config: ${keyword} names \${${name}}, which is not set.`);
    return value;
  });
  if (withEnv === '~') return around.home;
  return withEnv.startsWith('~/') ? around.home + withEnv.slice(1) : withEnv;
}
