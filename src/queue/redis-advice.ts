import { readFileSync } from 'node:fs';
import { GryphusError } from '../errors.ts';

/**
 * How to install Redis on each system, by its ID in os-release(5), or by `process.platform` if there is no such file.
 */
const COMMANDS: Readonly<Record<string, string>> = {
  debian: 'apt-get install redis-server',
  ubuntu: 'apt-get install redis-server',
  fedora: 'dnf install redis` (or `valkey`, which replaces it in newer releases)',
  rhel: 'dnf install redis` (or `valkey`, which replaces it in newer releases)',
  centos: 'dnf install redis` (or `valkey`, which replaces it in newer releases)',
  suse: 'zypper install redis` (or `valkey`, which replaces it in newer releases)',
  opensuse: 'zypper install redis` (or `valkey`, which replaces it in newer releases)',
  arch: 'pacman -S valkey',
  alpine: 'apk add redis',
  gentoo: 'emerge dev-db/redis',
  void: 'xbps-install valkey',
  nixos: 'nix profile install nixpkgs#redis',
  darwin: 'brew install redis',
  freebsd: 'pkg install redis',
};
/** On these systems the command is not run as root. */
const AS_USER: ReadonlySet<string> = new Set(['nixos', 'darwin']);

/** How to install Redis on this system, in one sentence. `osRelease`: the text of /etc/os-release, or ''. */
export function howToInstall(
  osRelease: string = ownRelease(),
  platform: string = process.platform,
  root: boolean = process.getuid?.() === 0,
): string {
  const known = [...idsOf(osRelease), platform].find((id) => Object.hasOwn(COMMANDS, id));
  if (known === undefined) return "Install Redis with this system's package manager.";
  const command = COMMANDS[known] ?? '';
  const text = `${root || AS_USER.has(known) ? '' : 'sudo '}${command}`;
  return `Install it: \`${text}${text.includes('`') ? '' : '`'}.`;
}

/** The error 'missing-program', with suggestions. */
export function noRedis(message: string, cause?: unknown): GryphusError {
  return new GryphusError('missing-program', message, {
    ...(cause === undefined ? {} : { cause }),
    suggestions: [
      howToInstall(),
      'Or name a redis-server with GRYPHUS_REDIS_SERVER, or a running Redis with REDIS_URL.',
    ],
  });
}

/** ID, then the words of ID_LIKE, closest relative first. */
function idsOf(osRelease: string): string[] {
  const value = (name: string) => new RegExp(`^${name}=["']?([^"'\\n]*)`, 'm').exec(osRelease)?.[1] ?? '';
  const ids = `${value('ID')} ${value('ID_LIKE')}`.toLowerCase().split(/\s+/);
  // opensuse-leap, opensuse-tumbleweed
  return ids.flatMap((id) => [id, id.replace(/-.*/, '')]).filter((id) => id !== '');
}

function ownRelease(): string {
  try {
    return readFileSync('/etc/os-release', 'utf8');
  } catch {
    return '';
  }
}
