import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import type { SshdOptions } from './sshd.ts';

const PAM_EXEC = [
  '/lib/x86_64-linux-gnu/security/pam_exec.so',
  '/lib/aarch64-linux-gnu/security/pam_exec.so',
  '/lib/security/pam_exec.so',
];

/** What makes an sshd ask for a one-time code after the key, through PAM. */
export interface OneTimeCodes {
  readonly options: Pick<SshdOptions, 'program' | 'config'>;
  /** The code that is accepted next; each one is accepted once. */
  next(): string;
  remove(): void;
}

/** Why an sshd cannot ask for codes here, or undefined: its PAM service is a file in /etc. */
export function codesMissing(): string | undefined {
  if (process.getuid?.() !== 0) return 'only root can configure PAM';
  return PAM_EXEC.some((file) => existsSync(file)) ? undefined : 'PAM has no pam_exec here';
}

export function oneTimeCodes(): OneTimeCodes {
  const dir = mkdtempSync(join(tmpdir(), 'gryphus-otp-'));
  // sshd's PAM service has the name of its program, in lower case.
  const name = `sshd-otp-${process.pid}-${basename(dir).toLowerCase().slice(-6)}`;
  const program = join(dir, name);
  copyFileSync('/usr/sbin/sshd', program);
  const used = join(dir, 'used');
  writeFileSync(used, '');
  const check = join(dir, 'check');
  const script = `#!/bin/sh\n[ "$(tr -d '\\000')" = "code-$(wc -l <${used})" ] && echo 1 >>${used}\n`;
  writeFileSync(check, script, { mode: 0o755 });
  const service = join('/etc/pam.d', name);
  writeFileSync(
    service,
    `auth required pam_exec.so expose_authtok quiet ${check}\nauth required pam_permit.so\naccount required pam_permit.so\nsession required pam_permit.so\n`,
  );
  return {
    options: {
      program,
      config: [
        // By default root may not type a code.
        'PermitRootLogin yes',
        'UsePAM yes',
        'KbdInteractiveAuthentication yes',
        'AuthenticationMethods publickey,keyboard-interactive',
      ],
    },
    next: () => `code-${readFileSync(used, 'utf8').split('\n').length - 1}`,
    remove() {
      rmSync(service, { force: true });
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
