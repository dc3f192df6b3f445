import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { GryphusError } from '../errors.ts';
import { type Askpass, serveAskpass } from './askpass.ts';
import { expiredCertificate } from './certificate-files.ts';
import type { SshEndpoint } from './endpoint.ts';
import { certificateExpired } from './login-errors.ts';
import { opensshError } from './openssh-errors.ts';
import type { Prompt } from './prompt.ts';
import type { SshSettings } from './ssh-settings.ts';
import { ownUser } from '../util/own-user.ts';

export interface MasterOptions {
  readonly prompt?: Prompt;
  readonly sshConfigFile?: string;
  readonly identityFiles?: readonly string[];
}

/** One `ssh -M`: the connection that the channels share. */
export interface Master {
  readonly controlPath: string;
  /** Resolves with the reason when the connection is lost. */
  readonly lost: Promise<Error>;
  readonly gone: boolean;
  close(): void;
}

/**
 * The guard ends ssh when this process dies for any reason, because only we hold the write end of descriptor 3. It ends
 * when ssh does.
 */
const GUARD = `"$@" 3<&- & m=$!; { read -r _; kill $m; } <&3 >/dev/null 2>&1 & g=$!; exec 3<&-; wait $m; s=$?; kill $g 2>/dev/null; exit $s`;

const POLL_MS = 15;

/** Connects and logs in; rejects with the GryphusError for ssh's message. */
export async function startMaster(
  label: string,
  endpoint: SshEndpoint,
  settings: SshSettings,
  options: MasterOptions,
): Promise<Master> {
  const dir = mkdtempSync(join(tmpdir(), 'gry-'));
  let askpass: Askpass | undefined;
  let stderr = '';
  let child: ChildProcess | undefined;
  let gone = false;
  let answered = options.prompt !== undefined;
  const end = (): void => {
    gone = true;
    askpass?.close();
    child?.stdio[3]?.destroy();
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    const { prompt } = options;
    if (prompt !== undefined) {
      const noting: Prompt = async (request) => {
        const answers = await prompt(request).catch(() => undefined);
        answered = answers !== undefined;
        return answers;
      };
      askpass = await serveAskpass(dir, label, noting);
    }
    const controlPath = join(dir, 'm');
    const words = ['ssh', ...masterArguments(controlPath, endpoint, settings, options)];
    const env = {
      ...process.env,
      ...(askpass === undefined ? {} : { SSH_ASKPASS: askpass.program, SSH_ASKPASS_REQUIRE: 'force' }),
    };
    const started = spawn('/bin/sh', ['-c', GUARD, 'sh', ...words], {
      stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
      env,
      // An interrupt from the terminal must only reach us; we then close in order.
      detached: true,
    });
    child = started;
    started.stderr?.on('data', (bytes: Buffer) => {
      stderr = `${stderr}${bytes.toString('utf8')}`.slice(-64 * 1024);
    });
    started.stdio[3]?.on('error', () => undefined);
    const lost = new Promise<Error>((resolve) => {
      started.once('error', resolve);
      started.once('close', () => {
        end();
        resolve(opensshError(label, stderr, answered));
      });
    });
    while (!existsSync(controlPath)) {
      const failed = await Promise.race([lost, delay(POLL_MS)]);
      if (failed !== undefined) throw startFailure(label, failed, stderr, settings);
    }
    return {
      controlPath,
      lost,
      get gone() {
        return gone;
      },
      close: end,
    };
  } catch (thrown) {
    end();
    throw thrown;
  }
}

function startFailure(label: string, failed: Error, stderr: string, settings: SshSettings): Error {
  if (/(^|\n)\S*: \d*:? ?ssh: not found/.test(stderr)) {
    return new GryphusError('missing-program', 'The ssh program is not installed.', {
      suggestions: ['Install it (Debian: openssh-client), or set transport = ssh2 for the site.'],
    });
  }
  const expired = expiredCertificate(settings, Date.now());
  const refused = failed instanceof GryphusError && failed.code === 'login-refused';
  return refused && expired !== undefined ? certificateExpired(label, expired) : failed;
}

function masterArguments(
  controlPath: string,
  endpoint: SshEndpoint,
  settings: SshSettings,
  options: MasterOptions,
): readonly string[] {
  const set = (name: string, value: string | number): string[] => ['-o', `${name}=${value}`];
  // OpenSSH takes the home directory from the password file and ignores HOME, so files in another HOME are named
  // explicitly.
  const moved = homedir() !== ownUser().homedir;
  const config = options.sshConfigFile ?? (moved ? join(homedir(), '.ssh', 'config') : undefined);
  const keys =
    options.identityFiles ?? (moved ? settings.identityFiles.map(({ path }) => path).filter(existsSync) : []);
  return [
    ...(config !== undefined && existsSync(config) ? ['-F', config] : []),
    '-v',
    '-M',
    '-N',
    '-T',
    ...set('ControlPath', controlPath),
    ...set('ControlPersist', 'no'),
    ...set('BatchMode', options.prompt === undefined ? 'yes' : 'no'),
    ...set('StrictHostKeyChecking', settings.strictHostKeyChecking === 'yes' ? 'yes' : 'accept-new'),
    ...set('UpdateHostKeys', 'no'),
    ...(moved ? set('UserKnownHostsFile', settings.userKnownHosts.map((file) => `"${file}"`).join(' ') || 'none') : []),
    ...set('ConnectTimeout', Math.ceil(settings.connectTimeoutMs / 1000)),
    ...set('ServerAliveInterval', Math.ceil(settings.serverAliveIntervalMs / 1000)),
    ...set('ServerAliveCountMax', settings.serverAliveCountMax),
    ...set('PermitLocalCommand', 'no'),
    ...set('ClearAllForwardings', 'yes'),
    ...(options.identityFiles === undefined ? [] : set('IdentitiesOnly', 'yes')),
    ...keys.flatMap((file) => ['-i', file]),
    ...(endpoint.user === undefined ? [] : ['-l', endpoint.user]),
    ...(endpoint.port === undefined ? [] : ['-p', String(endpoint.port)]),
    '--',
    endpoint.host,
  ];
}
