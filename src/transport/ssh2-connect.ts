import { spawn } from 'node:child_process';
import { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import ssh2, { type Client, type ConnectConfig } from 'ssh2';
import { asError, GryphusError } from '../errors.ts';
import { HostKeys } from './host-keys.ts';
import type { OpenedKeys } from './key-files.ts';
import type { Prompt } from './prompt.ts';
import { isCertificateType } from '../util/ssh-certificate.ts';
import { keyType } from './public-key.ts';
import { siteLabel, type SshSettings } from './ssh-settings.ts';
import { readyForMuch } from './ssh2-busy.ts';
import { askForHostCertificate, continueWithHostCertificate } from './ssh2-host-certificate.ts';
import { USE_OPENSSH } from './login-errors.ts';
import { Login } from './ssh2-login.ts';
import { useSigners } from './ssh2-signer.ts';
import { oneLine } from '../util/plain-text.ts';

export interface ConnectContext {
  readonly prompt: Prompt | undefined;
  readonly opened: OpenedKeys;
  /** The settings of a jump host, `[user@]host[:port]` as in ProxyJump. */
  readonly hop: (name: string) => SshSettings;
}

const MOST_HOPS = 8;
/** The last characters of what a ProxyCommand prints. */
const MOST_SAID = 1000;
/** How long its last words may take after its end, milliseconds. */
const LAST_WORDS_MS = 200;
/** sshd drops random connections when many arrive at once (MaxStartups), so a dropped one is tried again. */
const DROPPED_TRIES = 4;

/** A logged-in connection, made through its jump hosts. Rejects with a GryphusError. */
export async function connectSsh2(settings: SshSettings, context: ConnectContext, depth = 0): Promise<Client> {
  if (depth > MOST_HOPS)
    throw new GryphusError('bad-config', `ProxyJump of ${settings.alias} goes through too many hosts.`);
  for (let tries = 1; ; tries++) {
    const way = await wayTo(settings, context, depth);
    try {
      return await logIn(settings, context, way);
    } catch (thrown) {
      const error = await withLastWords(thrown instanceof Dropped ? thrown.error : asError(thrown), settings, way);
      way?.close();
      if (!(thrown instanceof Dropped) || tries === DROPPED_TRIES) throw error;
      await delay(100 * 3 ** tries * (0.5 + Math.random()));
    }
  }
}

/** What replaces a TCP connection: a channel of the last jump host, or a command's two pipes. */
interface Way {
  readonly stream: Duplex;
  /** Resolves with what a failed command printed to standard error. */
  lastWords?(): Promise<string>;
  close(): void;
}

async function wayTo(settings: SshSettings, context: ConnectContext, depth: number): Promise<Way | undefined> {
  const last = settings.proxyJump.at(-1);
  if (last !== undefined) {
    const before = settings.proxyJump.slice(0, -1);
    const own = context.hop(last);
    const jump = await connectSsh2(before.length > 0 ? { ...own, proxyJump: before } : own, context, depth + 1);
    try {
      const stream = await new Promise<Duplex>((resolve, reject) => {
        jump.forwardOut('127.0.0.1', 0, settings.hostName, settings.port, (error, channel) =>
          error ? reject(error) : resolve(channel),
        );
      });
      stream.once('close', () => jump.end());
      return { stream, close: () => jump.end() };
    } catch (thrown) {
      jump.end();
      const cause = asError(thrown);
      throw new GryphusError(
        'site-unreachable',
        `${siteLabel(settings)} cannot be reached from ${last}: ${cause.message}.`,
        {
          cause,
        },
      );
    }
  }
  if (settings.proxyCommand === undefined) return undefined;
  const child = spawn('/bin/sh', ['-c', `exec ${settings.proxyCommand}`], { stdio: 'pipe' });
  // Its failure shows as the end of the stream.
  child.on('error', () => undefined);
  child.stdin.on('error', () => undefined);
  child.stderr.on('error', () => undefined);
  let said = '';
  child.stderr.on('data', (bytes: Buffer) => {
    said = `${said}${bytes.toString('utf8')}`.slice(-MOST_SAID);
  });
  const stream = Duplex.from({ readable: child.stdout, writable: child.stdin });
  stream.once('close', () => child.kill());
  const ended = new Promise((resolve) => child.once('close', resolve));
  const lastWords = async (): Promise<string> => {
    await Promise.race([ended, delay(LAST_WORDS_MS)]);
    return said;
  };
  return { stream, lastWords, close: () => void child.kill() };
}

/** A ProxyCommand that fails says why, and the connection only that it ended. */
async function withLastWords(error: Error, settings: SshSettings, way: Way | undefined): Promise<Error> {
  if (way?.lastWords === undefined || !(error instanceof GryphusError) || error.code !== 'site-unreachable')
    return error;
  const words = oneLine(await way.lastWords());
  if (words === '') return error;
  const where = siteLabel(settings);
  return new GryphusError('site-unreachable', `${where} cannot be reached: its ProxyCommand said: ${words}.`, {
    cause: error,
  });
}

/** A connection that ended before the server sent anything. */
class Dropped extends Error {
  readonly error: GryphusError;
  constructor(error: GryphusError) {
    super(error.message);
    this.error = error;
  }
}

function logIn(settings: SshSettings, context: ConnectContext, way: Way | undefined): Promise<Client> {
  const where = siteLabel(settings);
  const client = new ssh2.Client();
  return new Promise((resolve, reject) => {
    let over = false;
    let timer: NodeJS.Timeout | undefined;
    const fail = (error: Error): void => {
      if (over) return;
      over = true;
      clearTimeout(timer);
      reject(error);
      client.destroy();
    };
    const clock = (running: boolean): void => {
      clearTimeout(timer);
      if (!running || over) return;
      const seconds = settings.connectTimeoutMs / 1000;
      timer = setTimeout(() => {
        fail(new GryphusError('site-unreachable', `${where} does not answer (waited ${seconds} s).`));
      }, settings.connectTimeoutMs);
    };
    const login = new Login(where, settings, {
      prompt: context.prompt,
      opened: context.opened,
      asking: (asking) => clock(!asking),
      abort: fail,
    });
    const hostKeys = new HostKeys(settings);
    const config: ConnectConfig = {
      host: settings.hostName,
      port: settings.port,
      username: settings.user,
      readyTimeout: 0,
      keepaliveInterval: settings.serverAliveIntervalMs,
      keepaliveCountMax: settings.serverAliveCountMax,
      algorithms: { serverHostKey: hostKeys.algorithms },
      ...(way === undefined ? {} : { sock: way.stream }),
      hostVerifier: (key: Buffer, answer: (good: boolean) => void) => {
        const refusal = hostKeys.refusal(key);
        if (refusal !== undefined) fail(refusal);
        else if (isCertificateType(keyType(key))) continueWithHostCertificate(client, key);
        answer(refusal === undefined);
      },
      authHandler: (left, _partial, answer) => {
        clock(true);
        login.next(left).then(
          (method) => (method === false ? fail(login.refusal()) : answer(method)),
          (thrown: unknown) => fail(asError(thrown)),
        );
      },
    };
    let greeted = false;
    client.once('handshake', () => {
      greeted = true;
    });
    client.on('error', (error) => {
      if (over) return;
      if (/before handshake/.test(error.message)) fail(new Dropped(unreachable(where, error)));
      else
        fail(
          greeted && /Too many authentication/i.test(error.message) ? tooMany(where, error) : unreachable(where, error),
        );
    });
    client.once('close', () => fail(unreachable(where, new Error('the connection was closed'))));
    client.once('ready', () => {
      over = true;
      clearTimeout(timer);
      // Otherwise, small requests are delayed by 40 ms (Nagle's algorithm combined with delayed acknowledgements).
      client.setNoDelay(true);
      readyForMuch(client);
      if (way !== undefined) client.once('close', () => way.close());
      resolve(client);
    });
    clock(true);
    client.connect(config);
    useSigners(client, fail);
    if (hostKeys.authority) askForHostCertificate(client);
  });
}

function unreachable(where: string, cause: Error): GryphusError {
  const suggestions = /no matching/.test(cause.message) ? [USE_OPENSSH] : [];
  return new GryphusError('site-unreachable', `${where} cannot be reached: ${cause.message}.`, { cause, suggestions });
}

function tooMany(where: string, cause: Error): GryphusError {
  return new GryphusError('login-refused', `${where} refused the log-in after too many keys: ${cause.message}.`, {
    cause,
    suggestions: ['Name the right key in ~/.ssh/config: IdentityFile, and IdentitiesOnly yes.'],
  });
}
