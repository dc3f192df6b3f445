import type { Transport } from './contract.ts';
import { type Endpoint, parseEndpoint, type SshEndpoint } from './endpoint.ts';
import type { Prompt } from './prompt.ts';
import { siteLabel, type SshSettings, sshSettings } from './ssh-settings.ts';
import { readSshConfig, surroundings } from './surroundings.ts';

export interface TransportOptions {
  /** Asks a person at log-in; without it, a log-in that needs a person fails with 'needs-login'. */
  readonly prompt?: Prompt;
  /** `ssh2` (in this process), `openssh` (the system's ssh), or whichever supports what the host needs. */
  readonly transport?: 'ssh2' | 'openssh' | 'auto';
  /** Read in place of ~/.ssh/config and the system's configuration, as with `ssh -F`. */
  readonly sshConfigFile?: string;
  /** Key files to use in place of the configured ones. */
  readonly identityFiles?: readonly string[];
  /** `accept-new` records the key of an unknown host; a changed key is refused all the same. */
  readonly hostKeys?: 'strict' | 'accept-new';
  /** How long the login shell may take to run a command, in milliseconds (start-limit.ts). */
  readonly startMs?: number;
}

/**
 * Opens the way to a machine: `local`, `ssh://[user@]host[:port]` or a Host in ~/.ssh/config. Does not connect yet.
 * 'bad-input' for anything else, 'bad-config' for an unreadable ssh configuration.
 */
export async function openTransport(site: string | Endpoint, options: TransportOptions = {}): Promise<Transport> {
  const endpoint = typeof site === 'string' ? parseEndpoint(site) : site;
  if (endpoint.kind === 'local') return new (await import('./local.ts')).LocalTransport();
  const around = surroundings();
  const files = readSshConfig(options.sshConfigFile, around.home);
  const settings = { ...sshSettings(endpoint, files, around), ...overrides(options) };
  const label = siteLabel(settings);
  const kind = options.transport ?? 'auto';
  if (kind === 'openssh' || (kind === 'auto' && settings.needsOpenssh !== undefined)) {
    const { OpensshTransport } = await import('./openssh.ts');
    return new OpensshTransport(label, endpoint, settings, options);
  }
  const [{ Ssh2Transport }, { OpenedKeys }] = await Promise.all([import('./ssh.ts'), import('./key-files.ts')]);
  const hop = (name: string): SshSettings => {
    const jump = parseEndpoint(name);
    if (jump.kind === 'local')
      return sshSettings({ kind: 'ssh', host: name, user: undefined, port: undefined }, files, around);
    return { ...sshSettings(jump, files, around), ...policy(options) };
  };
  const { prompt, startMs } = options;
  const start = startMs === undefined ? {} : { startMs };
  return new Ssh2Transport(label, settings, { prompt, opened: new OpenedKeys(), hop, ...start });
}

/** The settings with which a site would be reached, for checking them step by step. */
export function settingsOf(endpoint: SshEndpoint, options: TransportOptions = {}): SshSettings {
  const around = surroundings();
  return { ...sshSettings(endpoint, readSshConfig(options.sshConfigFile, around.home), around), ...overrides(options) };
}

function policy(options: TransportOptions): Partial<SshSettings> {
  if (options.hostKeys === undefined) return {};
  return { strictHostKeyChecking: options.hostKeys === 'strict' ? 'yes' : 'accept-new' };
}

function overrides(options: TransportOptions): Partial<SshSettings> {
  const identityFiles = options.identityFiles?.map((path) => ({ path, explicit: true }));
  return { ...policy(options), ...(identityFiles === undefined ? {} : { identityFiles, identitiesOnly: true }) };
}
