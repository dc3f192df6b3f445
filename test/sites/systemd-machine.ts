import { spawn, spawnSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { skipWithoutUml } from './uml.ts';

const PARTS = ['/usr/sbin/mkfs.ext4', '/usr/lib/systemd/systemd-logind', '/usr/bin/loginctl', '/usr/bin/su'];

/** What is missing for a machine with systemd; '' if nothing is. */
export function missingForSystemd(): string {
  if (skipWithoutUml()) return 'root and linux.uml (Debian: user-mode-linux)';
  if (!process.execPath.startsWith('/usr/')) return 'a Node in /usr';
  return PARTS.filter((part) => !existsSync(part)).join(', ');
}

const MOUNTS = { '/usr': '/usr' };
/** Boots these units alone. */
const TARGET = `[Unit]
Requires=basic.target
Wants=systemd-logind.service dbus.service dbus.socket systemd-user-sessions.service test.service
After=basic.target
AllowIsolate=yes
`;
const SERVICE = `[Unit]
After=systemd-logind.service dbus.service systemd-user-sessions.service
[Service]
Type=exec
ExecStart=/bin/sh -c 'exec sh /test >/dev/console 2>&1'
TimeoutStopSec=20
`;

/**
 * Boots this machine's Debian with its systemd and logind under user-mode Linux, on a disk of its own that only /usr and `mounts` (what is
 * here, by where it is there; read only) are not on, with a user `alice`. `script` is run as root after each boot, with the number of
 * boots before in $BOOT. Resolves with all that was printed when the machine is switched off, or after `timeoutMs`.
 */
export async function underSystemd(
  script: string,
  mounts: Readonly<Record<string, string>>,
  timeoutMs: number,
): Promise<string> {
  const dir = mkdtempSync('/var/tmp/gry-systemd-');
  try {
    const all = { ...MOUNTS, ...mounts };
    makeDisk(dir, script, Object.values(all));
    const init = [
      '#!/bin/sh',
      'export PATH=/usr/sbin:/usr/bin:/sbin:/bin',
      'mount -t ext4 /dev/ubdb /media || { echo "there is no disk"; exit; }',
      ...Object.entries(all).map(([here, there]) => `mount -t hostfs -o '${here}' none '/media${there}'`),
      'cd /media; pivot_root . old; mount -t devtmpfs dev dev',
      'exec chroot . /lib/systemd/systemd --unit=test.target --show-status=0 --log-target=null <dev/console >dev/console 2>&1',
    ];
    writeFileSync(join(dir, 'init'), `${init.join('\n')}\n`, { mode: 0o755 });
    return await boot(dir, timeoutMs);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function makeDisk(dir: string, script: string, mountPoints: readonly string[]): void {
  const root = join(dir, 'root');
  mkdirSync(root);
  chmodSync(root, 0o755);
  const shell = (line: string) => {
    const { status, stderr } = spawnSync('/bin/sh', ['-c', line], { cwd: root, encoding: 'utf8' });
    if (status !== 0) throw new Error(`${line}: ${stderr}`);
  };
  shell(
    'cp -a /etc etc; rm -rf etc/systemd/system/*.wants etc/systemd/system/*.requires; : >etc/fstab; : >etc/machine-id',
  );
  shell('mkdir -p var/lib/systemd var/log var/tmp home proc sys dev run tmp root old; chmod 1777 tmp var/tmp');
  for (const point of mountPoints) mkdirSync(join(root, point), { recursive: true });
  symlinkSync('../run', join(root, 'var/run'));
  for (const link of ['bin', 'lib', 'lib64', 'sbin']) symlinkSync(`usr/${link}`, join(root, link));
  appendFileSync(join(root, 'etc/passwd'), 'alice:x:1500:1500::/home/alice:/bin/sh\n');
  appendFileSync(join(root, 'etc/group'), 'alice:x:1500:\n');
  appendFileSync(join(root, 'etc/shadow'), 'alice:*:19000:0:99999:7:::\n');
  shell('mkdir home/alice; chown 1500:1500 home/alice');
  writeFileSync(join(root, 'etc/systemd/system/test.target'), TARGET);
  writeFileSync(join(root, 'etc/systemd/system/test.service'), SERVICE);
  const counted = 'BOOT=$(cat /boots 2>/dev/null || echo 0); echo $((BOOT + 1)) >/boots; sync';
  writeFileSync(join(root, 'test'), `${counted}\n${script}\n`);
  shell('truncate -s 1500M ../disk && mkfs.ext4 -q -F -d . ../disk');
}

function boot(dir: string, timeoutMs: number): Promise<string> {
  const kernel = ['rootfstype=hostfs', 'rootflags=/', 'ro', 'mem=2500M', 'quiet', `init=${join(dir, 'init')}`];
  const args = [...kernel, `ubdb=${join(dir, 'disk')}`, 'con=null', 'con0=null,fd:1', `uml_dir=${dir}`, 'umid=it'];
  return new Promise((resolve, reject) => {
    const child = spawn('linux.uml', args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    let text = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (piece: string) => (text += piece));
    const end = () => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It no longer exists.
      }
    };
    const timer = setTimeout(end, timeoutMs);
    child.once('error', reject);
    child.once('close', () => {
      clearTimeout(timer);
      end();
      resolve(text.replaceAll('\r', ''));
    });
  });
}
