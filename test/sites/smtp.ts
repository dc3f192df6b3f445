import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';

export interface CaughtMail {
  readonly from: string;
  readonly to: readonly string[];
  /** As it crossed the wire. */
  readonly raw: string;
  readonly tls: boolean;
  readonly user: string | undefined;
}

export interface SmtpSink {
  readonly port: number;
  /** PEM of its self-signed certificate for `localhost`. */
  readonly ca: string;
  readonly mails: CaughtMail[];
  stop(): Promise<void>;
}

/** A real SMTP server on loopback that keeps what it receives; `login` requires that user and password. */
export async function startSmtp(
  options: SMTPServerOptions & { readonly login?: { readonly user: string; readonly password: string } } = {},
): Promise<SmtpSink> {
  const dir = mkdtempSync(join(tmpdir(), 'smtp-'));
  const [keyFile, certFile] = [join(dir, 'key.pem'), join(dir, 'cert.pem')];
  execFileSync(
    'openssl',
    `req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout ${keyFile} -out ${certFile}`.split(
      ' ',
    ),
    { stdio: 'ignore' },
  );
  const ca = readFileSync(certFile, 'utf8');
  const mails: CaughtMail[] = [];
  const { login, ...given } = options;
  const server = new SMTPServer({
    key: readFileSync(keyFile),
    cert: ca,
    authOptional: login === undefined,
    disabledCommands: login === undefined ? ['AUTH'] : [],
    onAuth(auth, _session, done) {
      if (auth.username === login?.user && auth.password === login?.password) done(null, { user: auth.username ?? '' });
      // a server that repeats what it was sent
      else done(new Error(`Cannot log in ${auth.username} with ${auth.password}`));
    },
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        mails.push({
          from: session.envelope.mailFrom === false ? '' : session.envelope.mailFrom.address,
          to: session.envelope.rcptTo.map((one) => one.address),
          raw: Buffer.concat(chunks).toString('utf8'),
          tls: session.secure,
          user: session.user,
        });
        done();
      });
    },
    ...given,
  });
  server.on('error', () => undefined); // clients that leave in the middle
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    port: (server.server.address() as AddressInfo).port,
    ca,
    mails,
    async stop() {
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
