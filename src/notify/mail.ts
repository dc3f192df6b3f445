import { asError, type ErrorCode, GryphusError } from '../errors.ts';
import { oneLine, redact } from '../util/plain-text.ts';
import { endText, runQuietly } from '../util/run-quietly.ts';
import { readSecretFile, takeFirstLine, wipe } from '../util/secret-file.ts';
import { shellQuote } from '../util/shell-quote.ts';
import type { Message } from './messages.ts';

export interface SmtpServer {
  readonly method: 'smtp';
  readonly host: string;
  readonly port: number;
  /** TLS from the first byte, STARTTLS (required, no fallback), or none. */
  readonly security: 'tls' | 'starttls' | 'none';
  readonly user?: string;
  readonly password?: PasswordSource;
  /** Certificate authorities (PEM) to trust in addition to the system's. */
  readonly ca?: string;
  /** Milliseconds for each step of the conversation; default: 30 s. */
  readonly timeoutMs?: number;
}

/** Where a password is read each time: the first line of a 0600 file, or of a command's output. */
export type PasswordSource = { readonly file: string } | { readonly command: string };

export interface SendmailProgram {
  readonly method: 'sendmail';
  /** Path of the sendmail program (Debian: /usr/sbin/sendmail). */
  readonly path: string;
}

export type MailRoute = SmtpServer | SendmailProgram;

const STEP_MS = 30_000;
const PASSWORD_COMMAND_MS = 60_000;

/**
 * Sends one message as plain text. Resolves when the server has accepted it. Errors: 'bad-config' and 'not-permitted'
 * (settings here), 'login-refused' (the password), 'timeout' and 'protocol-error' (try later), 'site-refused' (the
 * server rejects it). No error text contains the password.
 */
export async function sendMail(route: MailRoute, from: string, to: readonly string[], message: Message): Promise<void> {
  for (const address of [from, ...to]) checkAddress(address);
  if (to.length === 0) throw new GryphusError('bad-config', 'No mail address is configured.');
  const nodemailer = await import('nodemailer');
  const mail = {
    from,
    to: [...to],
    envelope: { from, to: [...to] },
    subject: oneLine(message.subject),
    text: message.body,
    headers: { 'Auto-Submitted': 'auto-generated' },
    disableFileAccess: true,
    disableUrlAccess: true,
  };
  if (route.method === 'sendmail') {
    const program = nodemailer.createTransport({ sendmail: true, path: route.path, newline: 'unix' });
    await program.sendMail(mail).catch((thrown: unknown) => {
      throw new GryphusError(
        'missing-program',
        `${route.path} did not accept the mail: ${oneLine(asError(thrown).message)}`,
        {
          suggestions: ['Set notify.sendmail to a program compatible with sendmail, or notify.method to "smtp".'],
        },
      );
    });
    return;
  }
  const password = await readPassword(route);
  const secret = password?.toString('utf8') ?? '';
  const server = nodemailer.createTransport({
    host: route.host,
    port: route.port,
    secure: route.security === 'tls',
    requireTLS: route.security === 'starttls',
    ignoreTLS: route.security === 'none',
    ...(route.user === undefined ? {} : { auth: { user: route.user, pass: secret } }),
    ...(route.ca === undefined ? {} : { tls: { ca: await withSystemRoots(route.ca) } }),
    connectionTimeout: route.timeoutMs ?? STEP_MS,
    greetingTimeout: route.timeoutMs ?? STEP_MS,
    socketTimeout: route.timeoutMs ?? STEP_MS,
  });
  try {
    await server.sendMail(mail);
  } catch (thrown) {
    throw refusal(route, asError(thrown), secret);
  } finally {
    wipe(password);
    server.close();
  }
}

async function withSystemRoots(ca: string): Promise<string[]> {
  const { rootCertificates } = await import('node:tls');
  return [...rootCertificates, ca];
}

/** Accepts only a bare address for the envelope: no option of a program, no second header. */
function checkAddress(address: string): void {
  if (/^[^\s<>,;:"()[\]\\\u0000-\u001f\u007f-][^\s<>,;:"()[\]\\\u0000-\u001f\u007f]*$/u.test(address)) return;
  throw new GryphusError('bad-config', `'${oneLine(address)}' is not a mail address.`, {
    suggestions: ['Write it bare, as in notify.email = "jane@example.org".'],
  });
}

const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|::1)$/;

async function readPassword(route: SmtpServer): Promise<Buffer | undefined> {
  if (route.user === undefined) return undefined;
  if (route.password === undefined) {
    throw new GryphusError('bad-config', `The mail server ${route.host} has a user configured, but no password.`, {
      suggestions: ['Put the password into a file of mode 0600 and name it in notify.smtp.password_file.'],
    });
  }
  if (route.security === 'none' && !LOOPBACK.test(route.host)) {
    throw new GryphusError(
      'bad-config',
      `The password for ${route.host} would cross the network unencrypted, so it is not sent.`,
      {
        suggestions: ['Set notify.smtp.security to "starttls" or "tls".'],
      },
    );
  }
  if ('file' in route.password) return takeFirstLine(readSecretFile(route.password.file, 'password file'));
  const end = await runQuietly(['/bin/sh', '-c', route.password.command], {
    timeoutMs: PASSWORD_COMMAND_MS,
    keepStdout: 4096,
  });
  if (end.how !== 'exited' || end.code !== 0) {
    throw new GryphusError('bad-config', `The command for the mail password ${endText(end, PASSWORD_COMMAND_MS)}.`, {
      suggestions: ['Run it by hand; it must print the password on its first line.'],
    });
  }
  return takeFirstLine(end.stdout);
}

interface MailFailure {
  readonly code?: string;
  readonly responseCode?: number;
  readonly response?: string;
}

/** One sentence for each way in which mail fails. Drops nodemailer's error, which may quote the log-in. */
function refusal(route: SmtpServer, thrown: Error, secret: string): GryphusError {
  const failure = thrown as MailFailure;
  const secrets = [
    secret,
    Buffer.from(secret).toString('base64'),
    Buffer.from(`\0${route.user}\0${secret}`).toString('base64'),
  ];
  const message = oneLine(redact(failure.response ?? thrown.message, secret === '' ? [] : secrets));
  const server = `${route.host}:${route.port}`;
  const permanent = (failure.responseCode ?? 0) >= 500;
  const is = (code: ErrorCode, what: string, ...suggestions: string[]) =>
    new GryphusError(code, `The mail server ${server} ${what}: ${message}`, { suggestions });
  switch (failure.code ?? '') {
    case 'EAUTH':
      return permanent
        ? is(
            'login-refused',
            'refused the log-in',
            `Check notify.smtp.user, and the password: ${passwordPlace(route)}.`,
          )
        : is('protocol-error', 'cannot check the log-in now');
    case 'ETLS':
    case 'EREQUIRETLS':
      return is('bad-config', 'does not offer the configured TLS', 'Check notify.smtp.security and notify.smtp.port.');
    case 'ETIMEDOUT':
      return is('timeout', 'did not answer in time');
    case 'EENVELOPE':
    case 'EMESSAGE':
      return permanent ? is('site-refused', 'refused the mail') : is('protocol-error', 'does not accept the mail now');
    case 'ESOCKET':
    case 'ECONNECTION':
    case 'EDNS':
      return is('site-unreachable', 'cannot be reached');
    default:
      return is('protocol-error', 'failed');
  }
}

function passwordPlace(route: SmtpServer): string {
  if (route.password === undefined) return 'none is set';
  return 'file' in route.password ? `the first line of ${shellQuote(route.password.file)}` : 'what the command prints';
}
