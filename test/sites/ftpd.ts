import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { answers, freePort } from './ports.ts';

const PLACE = resolve(import.meta.dirname, '../../node_modules/.cache/proftpd');
const PACKAGES = [
  'proftpd-core',
  'proftpd-mod-crypto',
  'libhiredis0.14',
  'libmemcached11',
  'libmemcachedutil2',
  'libhashkit2',
  'libpcre2-posix3',
];

/** ProFTPD and its libraries, unpacked once outside the system: as packages they conflict with other FTP servers. */
function unpack(): string | undefined {
  if (existsSync(join(PLACE, 'usr/sbin/proftpd'))) return PLACE;
  const dir = mkdtempSync(join(tmpdir(), 'gft-'));
  try {
    const quiet = { cwd: dir, stdio: 'ignore' } as const;
    execFileSync('apt-get', ['download', '-q', ...PACKAGES], quiet);
    execFileSync('sh', ['-c', 'for deb in *.deb; do dpkg -x "$deb" x || exit; done'], quiet);
    mkdirSync(resolve(PLACE, '..'), { recursive: true });
    const fresh = `${PLACE}.${process.pid}`;
    cpSync(join(dir, 'x'), fresh, { recursive: true, verbatimSymlinks: true });
    renameSync(fresh, PLACE);
    return PLACE;
  } catch {
    return existsSync(join(PLACE, 'usr/sbin/proftpd')) ? PLACE : undefined;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** For `describe.skipIf`: prints a line if the server is not available. */
export function skipWithoutFtpd(): boolean {
  if (unpack() !== undefined) return false;
  process.stderr.write('Tests with a real FTP server are left out: proftpd-core cannot be downloaded.\n');
  return true;
}

export interface Ftpd {
  readonly port: number;
  /** What the log-in sees as its directory. */
  readonly files: string;
  readonly user: string;
  readonly password: string;
  /** PEM file of the authority that signed the server's certificate: itself. */
  readonly ca: string;
  stop(): Promise<void>;
}

/** A private ProFTPD on loopback with one log-in; with `tls`, TLS is required. */
export async function startFtpd({ tls }: { readonly tls: boolean }): Promise<Ftpd> {
  const place = unpack();
  if (place === undefined) throw new Error('proftpd is not there');
  const dir = mkdtempSync(join(tmpdir(), 'gftpd-'));
  chmodSync(dir, 0o755);
  const files = join(dir, 'files');
  mkdirSync(files);
  const { uid, gid } = owner();
  chownSync(files, uid, gid);
  const [user, password] = ['ftpu', 'planted secret'];
  const at = (name: string) => join(dir, name);
  const selfSigned = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost'];
  const names = ['-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
  execFileSync('openssl', [...selfSigned, ...names, '-keyout', at('key.pem'), '-out', at('cert.pem')], {
    stdio: 'ignore',
  });
  chmodSync(at('key.pem'), 0o600);
  const hash = execFileSync('openssl', ['passwd', '-6', '-stdin'], { input: password, encoding: 'utf8' }).trim();
  writeFileSync(at('passwd'), `${user}:${hash}:${uid}:${gid}::${files}:/bin/sh\n`, { mode: 0o600 });
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    writeFileSync(at('proftpd.conf'), configuration(place, dir, port, tls));
    const child = spawn(join(place, 'usr/sbin/proftpd'), ['-n', '-q', '-c', at('proftpd.conf')], {
      stdio: 'ignore',
      env: { ...process.env, LD_LIBRARY_PATH: libraries(place) },
    });
    if (await comesUp(child, port)) {
      return { port, files, user, password, ca: at('cert.pem'), stop: () => stop(child, dir) };
    }
    await ended(child);
    if (attempt === 3) throw new Error(`proftpd does not start: ${readOr(at('proftpd.log'))}`);
  }
}

/** A log-in of root is refused. */
function owner(): { uid: number; gid: number } {
  const uid = process.getuid?.() ?? 0;
  return uid === 0 ? { uid: 65_534, gid: 65_534 } : { uid, gid: process.getgid?.() ?? uid };
}

function libraries(place: string): string {
  const found = execFileSync('find', [join(place, 'usr/lib'), '-name', '*.so*', '-printf', String.raw`%h\n`]);
  return [...new Set(found.toString().trim().split('\n'))].join(':');
}

function configuration(place: string, dir: string, port: number, tls: boolean): string {
  const { uid, gid } = owner();
  const name = (flag: string, id: number) => {
    const found = execFileSync('getent', [flag, String(id)], { encoding: 'utf8' });
    return found.split(':')[0] ?? String(id);
  };
  return `ModulePath ${place}/usr/lib/proftpd
LoadModule mod_tls.c
ServerName site
ServerType standalone
DefaultAddress 127.0.0.1
SocketBindTight on
Port ${port}
User ${name('passwd', uid)}
Group ${name('group', gid)}
PidFile ${dir}/proftpd.pid
ScoreboardFile ${dir}/scoreboard
DelayTable none
SystemLog ${dir}/proftpd.log
TransferLog none
WtmpLog off
UseReverseDNS off
AuthOrder mod_auth_file.c
AuthUserFile ${dir}/passwd
AuthPAM off
RequireValidShell off
PersistentPasswd off
DefaultRoot ~
AllowOverwrite on
AllowStoreRestart on
AllowRetrieveRestart on
MaxInstances 20
<IfModule mod_tls.c>
TLSEngine ${tls ? 'on' : 'off'}
TLSRequired ${tls ? 'on' : 'off'}
TLSProtocol TLSv1.2 TLSv1.3
TLSRSACertificateFile ${dir}/cert.pem
TLSRSACertificateKeyFile ${dir}/key.pem
TLSVerifyClient off
TLSRenegotiate none
</IfModule>
`;
}

async function comesUp(child: ChildProcess, port: number): Promise<boolean> {
  for (let i = 0; i < 200 && child.exitCode === null; i++) {
    if (await answers(port)) return true;
    await new Promise((done) => setTimeout(done, 50));
  }
  return false;
}

async function stop(child: ChildProcess, dir: string): Promise<void> {
  await ended(child);
  rmSync(dir, { recursive: true, force: true });
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((done) => child.once('exit', done));
  child.kill('SIGTERM');
  await gone;
}

function readOr(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
