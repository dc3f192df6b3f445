import { createHash } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { GryphusError } from '../errors.ts';
import { markDirectory } from '../util/marked-dir.ts';
import { ensurePrivateDir } from '../util/private-file.ts';
import { refuseNewerState } from '../util/state-version.ts';

/** All paths are absolute. Directories are 0700. */
export interface Paths {
  /** `config.toml` and `sites/`. */
  readonly configDir: string;
  readonly configFile: string;
  readonly sitesDir: string;
  /** Everything that must survive a restart. */
  readonly stateDir: string;
  readonly redisDir: string;
  readonly logDir: string;
  /** Results on their way home, and other large temporary data. */
  readonly spoolDir: string;
  /** Unix sockets; short enough for sun_path (unix(7): 108 bytes including the NUL). */
  readonly socketDir: string;
}

/** Space for the longest socket name in `socketDir`, including its slash. */
const SOCKET_NAME = 32;
const SUN_PATH = 107;

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * `$GRYPHUS_HOME` (everything in one directory), or the XDG base directories; relative ones are ignored, as the
 * specification requires. Throws 'bad-config' if they are needed and there is no home directory, or `$GRYPHUS_HOME` is
 * something else.
 */
export function loadPaths(env: Environment = process.env, home: () => string = homedir): Paths {
  const own = env['GRYPHUS_HOME'];
  if (own && existsSync(own) && !statSync(own).isDirectory())
    throw new GryphusError('bad-config', `GRYPHUS_HOME is ${JSON.stringify(own)}, which is not a directory.`, {
      suggestions: ['Set GRYPHUS_HOME to a directory of your own.'],
    });
  const configDir = own ? resolve(own) : join(xdg(env['XDG_CONFIG_HOME'], home, '.config'), 'gryphus');
  const stateDir = own
    ? join(resolve(own), 'state')
    : join(xdg(env['XDG_STATE_HOME'], home, '.local/state'), 'gryphus');
  return {
    configDir,
    configFile: join(configDir, 'config.toml'),
    sitesDir: join(configDir, 'sites'),
    stateDir,
    redisDir: join(stateDir, 'redis'),
    logDir: join(stateDir, 'log'),
    spoolDir: join(stateDir, 'spool'),
    socketDir: socketDir(stateDir, env),
  };
}

function xdg(value: string | undefined, home: () => string, fallback: string): string {
  return value && isAbsolute(value) ? value : join(absoluteHome(home), fallback);
}

/** Never the working directory: the daemons have another one, and anybody may have written there. */
function absoluteHome(home: () => string): string {
  let found = '';
  let cause: unknown;
  try {
    found = home();
  } catch (thrown) {
    cause = thrown;
  }
  if (isAbsolute(found)) return found;
  const why = found === '' ? 'is not set' : `is ${JSON.stringify(found)}, not an absolute path`;
  throw new GryphusError('bad-config', `There is no home directory: HOME ${why}.`, {
    cause,
    suggestions: ['Set HOME, or GRYPHUS_HOME to a directory of your own.'],
  });
}

function socketDir(stateDir: string, env: Environment): string {
  const inState = join(stateDir, 'run');
  if (Buffer.byteLength(inState) + SOCKET_NAME <= SUN_PATH) return inState;
  const name = createHash('sha256').update(stateDir).digest('hex').slice(0, 12);
  const runtime = env['XDG_RUNTIME_DIR'];
  const uid = process.getuid?.() ?? 0;
  return runtime && isAbsolute(runtime) && Buffer.byteLength(runtime) < 40
    ? join(runtime, `gryphus-${name}`)
    : `/tmp/gryphus-${uid}-${name}`;
}

/**
 * Creates the state's directories; a GryphusError 'not-permitted' if one belongs to another user or is open to others,
 * 'state-version' if a newer Gryphus wrote what is there.
 */
export function ensureStateDirs(paths: Paths): void {
  refuseNewerState(paths.stateDir);
  for (const dir of [paths.stateDir, paths.redisDir, paths.logDir, paths.spoolDir, paths.socketDir])
    ensurePrivateDir(dir);
  markDirectory(paths.stateDir);
}
