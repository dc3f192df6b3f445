import { asError, GryphusError } from '../errors.ts';
import { oneLine, timeText } from '../util/plain-text.ts';
import { endText, runQuietly } from '../util/run-quietly.ts';
import { readSecretFile, takeFirstLine, wipe } from '../util/secret-file.ts';
import type { MyProxyAccount } from './myproxy-account.ts';
import { inspect, type Renewer, type Source } from './sources.ts';
import { loadProxy, loadUser, saveProxy } from './store.ts';
import type { Watched } from './watch/model.ts';
import { openCaDirectory } from './x509/ca-directory.ts';
import type { Credential } from './x509/proxy-file.ts';

/** Whether a credential was renewed, and how it is now. */
export type Renewed =
  | { readonly ok: true; readonly now: Watched }
  /** One sentence that never includes the renewer's output. */
  | { readonly ok: false; readonly message: string; readonly now: Watched };

/**
 * Renews a credential in the configured way. Success is determined by the file: the credential must end later than before,
 * or be usable when it was not. Never rejects.
 */
export async function renew(source: Source): Promise<Renewed> {
  const before = inspect(source);
  const { renewal } = source;
  if (renewal === undefined)
    return { ok: false, message: `No renewal is configured for '${source.name}'.`, now: before };
  let failure: string | undefined;
  try {
    failure = renewal.by === 'command' ? await runCommand(renewal) : await fromMyProxy(source, renewal);
  } catch (thrown) {
    failure = oneLine(asError(thrown).message);
  }
  const now = inspect(source);
  if (failure !== undefined) return { ok: false, message: failure, now };
  if (now.problem !== undefined) return { ok: false, message: `The renewal succeeded, but ${now.problem}`, now };
  const later =
    before.problem !== undefined || now.end === undefined || now.end > (before.end ?? Number.POSITIVE_INFINITY);
  if (later) return { ok: true, now };
  const end = now.end === undefined ? '' : ` at ${timeText(now.end)}`;
  return { ok: false, message: `The renewal succeeded, but the ${now.what} still ends${end}.`, now };
}

async function runCommand({ command, timeoutMs }: Renewer & { by: 'command' }): Promise<string | undefined> {
  const end = await runQuietly(['/bin/sh', '-c', command], { timeoutMs });
  if (end.how === 'exited' && end.code === 0) return undefined;
  return `The renew_command ${endText(end, timeoutMs)}; run it by hand to see why.`;
}

async function fromMyProxy(source: Source, { account, lifetime }: Renewer & { by: 'myproxy' }): Promise<undefined> {
  if (source.kind !== 'x509-proxy') {
    throw new GryphusError('bad-config', `A MyProxy server renews X.509 proxies, and '${source.name}' is none.`);
  }
  saveProxy(source.file, await fetchProxy(account, lifetime, source.file));
}

/** Gets a fresh proxy from an account, by passphrase or in exchange for the old one in `file`. */
export async function fetchProxy(account: MyProxyAccount, lifetime: number, file: string): Promise<Credential> {
  const { getCredential } = await import('./myproxy/client.ts');
  const server = {
    host: account.host,
    ...(account.port === undefined ? {} : { port: account.port }),
    ...(account.serverDn === undefined ? {} : { serverDn: account.serverDn }),
    trust: openCaDirectory(account.trust),
  };
  const what = {
    user: account.user,
    ...(account.credentialName === undefined ? {} : { credentialName: account.credentialName }),
  };
  if (account.passphraseFile !== undefined) {
    const passphrase = takeFirstLine(readSecretFile(account.passphraseFile, 'passphrase file'));
    try {
      return await getCredential(server, { ...what, passphrase }, { lifetime });
    } finally {
      wipe(passphrase);
    }
  }
  const old = loadProxy(file);
  const client = account.renewer === undefined ? old : await loadUser(account.renewer.cert, account.renewer.key);
  return getCredential(server, what, { lifetime, client, old });
}
