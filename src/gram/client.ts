import type { GramTarget } from '../config/gram-resource.ts';
import { giveProxy } from '../credentials/gsi/delegate.ts';
import { greet, withGsi } from '../credentials/gsi/connect.ts';
import type { Expected } from '../credentials/gsi/peer.ts';
import type { Wire } from '../credentials/gsi/wire.ts';
import { signRequest } from '../credentials/delegation.ts';
import type { Credential } from '../credentials/x509/proxy-file.ts';
import type { Trust } from '../credentials/x509/trust.ts';
import { kindOf } from '../credentials/x509/certificate.ts';
import { GryphusError } from '../errors.ts';
import { GRAM_ERROR, gramMessage } from './errors.ts';
import {
  frame,
  jobQuery,
  jobRequest,
  type GramMessage,
  numberOf,
  readFields,
  readHead,
  type Signal,
  signalQuery,
} from './protocol.ts';

export interface GramClientOptions {
  readonly target: GramTarget;
  readonly trust: () => Trust;
  /** Unix milliseconds. */
  readonly now: () => number;
  /** Timeout of one exchange, in milliseconds; the default of 60 s allows for the start of a job manager. */
  readonly timeoutMs?: number;
}

/** The answer to a job request: a contact that awaits the commit, or the reason for the refusal. */
export type Requested =
  | { readonly ok: true; readonly contact: string }
  | { readonly ok: false; readonly code: number; readonly message: string };

const LARGEST_HEAD = 16 * 1024;
const LARGEST_BODY = 128 * 1024;
const PROTOCOL = 'the GRAM protocol';

/**
 * GRAM2 with one gatekeeper and the job managers behind it. Each exchange has its own connection, as the protocol
 * requires. Errors: those of `withGsi`, 'login-refused' (the gatekeeper's 403), 'site-refused' (its 404).
 */
export class GramClient {
  readonly #options: GramClientOptions;

  constructor(options: GramClientOptions) {
    this.#options = options;
  }

  /** Checks that the gatekeeper lets us start jobs at this service; returns our own address on that connection. */
  async ping(credential: Credential): Promise<string> {
    const { target } = this.#options;
    return await this.#gatekeeper(credential, async (wire, address) => {
      await greet(wire, '0');
      await wire.send(frame(`ping/${target.service}`, target.host, ''));
      this.#admit(await readMessage(wire));
      return address;
    });
  }

  /** The version of the service's job manager. */
  async version(credential: Credential): Promise<string> {
    const answer = await this.#toService(credential, 'command: version\r\n');
    return answer.fields.get('version') ?? 'unknown';
  }

  /** Asks for a job and delegates the credential to it; with `two_phase` the job waits for its commit. */
  async request(credential: Credential, rsl: string, callbackUrl: string): Promise<Requested> {
    const answer = await this.#toService(credential, jobRequest(rsl, callbackUrl));
    const code = numberOf(answer, 'status');
    if (code === 0 || code === GRAM_ERROR.waitingForCommit) {
      const contact = answer.fields.get('job-manager-url') ?? '';
      if (URL.canParse(contact)) return { ok: true, contact };
      throw new GryphusError('protocol-error', `${this.#label} accepted the job but returned no contact for it.`);
    }
    const more = answer.fields.get('gt3-failure-message');
    return { ok: false, code, message: more === undefined ? gramMessage(code) : `${gramMessage(code)}: ${more}` };
  }

  /**
   * Starts a job manager that resumes the job of an old contact from its state file; `contact` in the answer is new.
   */
  restart(credential: Credential, contact: string, rsl: string, callbackUrl: string): Promise<Requested> {
    return this.request(credential, `&(restart=${contact})${rsl}`, callbackUrl);
  }

  /** `undefined`: nothing listens at the job's contact, or the job is unknown there. */
  query(credential: Credential, contact: string, query: string): Promise<GramMessage | undefined> {
    return this.#manager(credential, contact, async (wire, path, host) => {
      await wire.send(frame(path, host, jobQuery(query)));
      return await readMessage(wire);
    });
  }

  signal(credential: Credential, contact: string, signal: Signal, argument = ''): Promise<GramMessage | undefined> {
    return this.query(credential, contact, signalQuery(signal, argument));
  }

  /** Gives the running job manager a fresh proxy, which also replaces the job's own. */
  renew(credential: Credential, contact: string): Promise<GramMessage | undefined> {
    return this.#manager(credential, contact, async (wire, path, host) => {
      await wire.send(frame(path, host, jobQuery('renew')));
      const head = readHead((await wire.upTo('\r\n\r\n', LARGEST_HEAD)).toString('latin1'));
      if (head?.http !== 200) throw wire.nonsense();
      await wire.send(token(Buffer.from('D')));
      // Tokens follow, each after its length; the body that the head announces may or may not come before them.
      let first: number | undefined;
      await wire.until((unread) => {
        first = unread[0];
        return unread.length > 0;
      });
      if (first !== 0) await wire.bytes(head.length);
      const length = (await wire.bytes(4)).readUInt32BE(0);
      if (length > LARGEST_BODY) throw wire.nonsense();
      const proxy = signRequest(await wire.bytes(length), credential, this.#rights(credential));
      const chain = credential.chain.filter((one) => !one.ca).map((one) => one.der);
      await wire.send(token(Buffer.concat([proxy, ...chain])));
      return await readMessage(wire);
    });
  }

  async #toService(credential: Credential, body: string): Promise<GramMessage> {
    const { target } = this.#options;
    return await this.#gatekeeper(credential, async (wire) => {
      await greet(wire, 'D');
      await giveProxy(wire, credential, this.#rights(credential));
      await wire.send(frame(`/${target.service}`, target.host, body));
      const answer = await readMessage(wire);
      this.#admit(answer);
      return answer;
    });
  }

  /** As with Globus' own clients, the delegated proxy can read and write files in our name but not start jobs. */
  #rights(credential: Credential) {
    const now = Math.floor(this.#options.now() / 1000);
    return { now, lifetime: Math.max(1, credential.chain[0].notAfter - now), rights: 'limited' } as const;
  }

  #gatekeeper<T>(credential: Credential, talk: (wire: Wire, address: string) => Promise<T>): Promise<T> {
    const { host, port, subject } = this.#options.target;
    const remedy = (dn: string) => `append it to the contact: grid_resource = gt2 ${host}:${port}/SERVICE:${dn}`;
    const expect: Expected = subject === undefined ? { is: 'host', host, remedy } : { is: 'subject', dn: subject };
    return withGsi({ ...this.#common(), host, port, label: this.#label, expect }, credential, talk);
  }

  /** A job manager authenticates with a proxy of the user, so its identity must be our own. */
  async #manager<T>(
    credential: Credential,
    contact: string,
    talk: (wire: Wire, path: string, host: string) => Promise<T>,
  ): Promise<T | undefined> {
    const url = new URL(contact);
    const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
    const expect = { is: 'subject', dn: identityOf(credential) } as const;
    const label = `The job manager ${url.host}`;
    const target = { ...this.#common(), host, port: Number(url.port), label, expect };
    try {
      return await withGsi(target, credential, (wire) => talk(wire, url.pathname, url.host));
    } catch (thrown) {
      // It exited or was killed; the state file at the site still knows its jobs.
      if (thrown instanceof GryphusError && isRefused(thrown)) return undefined;
      throw thrown;
    }
  }

  #common() {
    const { trust, timeoutMs } = this.#options;
    return { trust: trust(), protocol: PROTOCOL, timeoutMs: timeoutMs ?? 60_000 };
  }

  get #label(): string {
    const { host, port } = this.#options.target;
    return `The gatekeeper ${host}:${port}`;
  }

  #admit({ http }: GramMessage): void {
    if (http === 200) return;
    if (http === 403) {
      throw new GryphusError(
        'login-refused',
        `${this.#label} refuses the log-in: it does not know this identity, or the proxy is a limited one.`,
        {
          suggestions: [
            'See your identity: gryphus cred proxy info',
            "Ask the site's admins for a line in their grid-mapfile.",
          ],
        },
      );
    }
    if (http === 404) {
      throw new GryphusError('site-refused', `${this.#label} has no service ${this.#options.target.service}.`, {
        suggestions: ['Ask its admins for the names of its services (jobmanager-fork, jobmanager-slurm, …).'],
      });
    }
    throw new GryphusError('protocol-error', `${this.#label} answers with the HTTP status ${http}.`);
  }
}

/** The subject of the user's own certificate, from which the proxies descend. */
export function identityOf({ chain }: Credential): string {
  const user = chain.find((one) => !kindOf(one).includes('proxy'));
  return (user ?? chain[chain.length - 1] ?? chain[0]).subject.text;
}

function isRefused(error: GryphusError): boolean {
  return (
    error.code === 'site-unreachable' && (error.cause as NodeJS.ErrnoException | undefined)?.code === 'ECONNREFUSED'
  );
}

function token(bytes: Uint8Array): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

async function readMessage(wire: Wire): Promise<GramMessage> {
  const head = readHead((await wire.upTo('\r\n\r\n', LARGEST_HEAD)).toString('latin1'));
  if (head === undefined || head.length > LARGEST_BODY) throw wire.nonsense();
  return { http: head.http, fields: readFields((await wire.bytes(head.length)).toString('utf8')) };
}
