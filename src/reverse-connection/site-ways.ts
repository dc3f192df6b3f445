import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { GryphusError } from '../errors.ts';
import type { ListenAt, Listening, Transport } from '../transport/contract.ts';
import { shellQuote } from '../util/shell-quote.ts';
import { chooseWays, type Tested, type WaysView } from './choose.ts';
import type { Way } from './home.ts';
import { type LoginRelay, startLoginRelay } from './login-relay.ts';
import { mailCarrier } from './mailbox/carry.ts';
import { MailboxStore } from './mailbox/mailbox-store.ts';
import { relay } from './relay.ts';

export interface SiteWaysOptions {
  /** The agent's own connection with the site; the caller closes it. */
  readonly transport: Transport;
  /** Our directory at the site, absolute. */
  readonly home: () => Promise<string>;
  /** The SHA-256 of the Node for pilots in the site's cache, if there is one. */
  readonly node: () => string | undefined;
  /** The agent's own port as reachable from the site's nodes, if configured. */
  readonly port: { readonly host: string; readonly port: number } | undefined;
  /** The socket at home to which workers' links are connected; there the workers identify themselves. */
  readonly centralManager: string;
  /** Takes a link that is not for the central manager; false if it is. */
  readonly takeDirect?: (raw: Duplex) => Promise<boolean>;
  readonly onView: (view: WaysView) => void;
  /** Milliseconds before a failed attempt is repeated, doubling up to a minute; default 2 s. */
  readonly againMs?: number;
}

/** The length of sun_path without its NUL. */
const LONGEST_SOCKET = 107;
const MOST_AGAIN_MS = 60_000;

/**
 * The reverse connections from one site while it has workers: the agent's ssh connection with a relay on the login
 * node, mailboxes, and the agent's own port. What can be tested is tested from the login node. The working ways are
 * listed in `ways.json` in our directory there, which workers read each time they dial.
 */
export class SiteWays {
  readonly #options: SiteWaysOptions;
  readonly #links = new Set<Duplex>();
  readonly #came = { connection: 0, mailbox: 0 };
  #workers: ReadonlySet<string> = new Set();
  #keeping: Promise<void> | undefined;
  #listening: Listening | undefined;
  #relay: LoginRelay | undefined;
  #mail: MailboxStore | undefined;
  #tested: Tested;
  #written = '';
  #againMs: number;
  #againAt = 0;

  constructor(options: SiteWaysOptions) {
    this.#options = options;
    this.#againMs = options.againMs ?? 2000;
    this.#tested = { port: options.port, connection: undefined, relay: undefined, mailbox: undefined };
  }

  /** Keeps ways home for these workers; each call repairs what has broken. Without workers, closes everything. */
  async keep(workers: ReadonlySet<string>): Promise<void> {
    for (const gone of this.#workers) if (!workers.has(gone)) this.#mail?.drop(gone);
    this.#workers = workers;
    if (workers.size === 0) return this.close();
    this.#keeping ??= this.#open().finally(() => {
      this.#keeping = undefined;
    });
    await this.#keeping;
  }

  close(): void {
    this.#mail?.close();
    this.#relay?.close();
    this.#listening?.close();
    this.#mail = undefined;
    this.#relay = undefined;
    this.#listening = undefined;
    for (const link of this.#links) link.destroy();
  }

  get view(): WaysView {
    return { ...chooseWays(this.#tested), came: { ...this.#came } };
  }

  async #open(): Promise<void> {
    if (this.#listening !== undefined && this.#relay !== undefined && this.#mail !== undefined) return;
    if (Date.now() < this.#againAt) return;
    const home = await this.#options.home();
    await this.#openConnection(home);
    await this.#openRelay(home);
    this.#openMail(home);
    await this.#write(home);
    const failed = this.#listening === undefined || this.#relay === undefined;
    this.#againMs = failed ? Math.min(MOST_AGAIN_MS, this.#againMs * 2) : (this.#options.againMs ?? 2000);
    this.#againAt = failed ? Date.now() + this.#againMs : 0;
  }

  async #openConnection(home: string): Promise<void> {
    if (this.#listening !== undefined) return;
    const { transport } = this.#options;
    const path = `${home}/way`;
    const places: ListenAt[] = [{ kind: 'port' }];
    if (Buffer.byteLength(path) <= LONGEST_SOCKET) places.unshift({ kind: 'socket', path });
    let why = '';
    for (const place of places) {
      try {
        const listening = await transport.listen(place, (raw) => this.#lead(raw, 'connection'));
        this.#listening = listening;
        this.#tested = { ...this.#tested, connection: { ok: true, place: listening.place } };
        void listening.closed.then(() => {
          if (this.#listening === listening) this.#listening = undefined;
          // The relay's target is gone.
          this.#relay?.close();
        });
        return;
      } catch (thrown) {
        if (!(thrown instanceof GryphusError) || thrown.code !== 'site-refused') throw thrown;
        why = thrown.message;
      }
    }
    this.#tested = { ...this.#tested, connection: { ok: false, why } };
  }

  async #openRelay(home: string): Promise<void> {
    const { transport, node, port } = this.#options;
    if (this.#relay !== undefined || this.#listening === undefined) return;
    try {
      const program = await this.#nodeThere(home, node());
      const started = await startLoginRelay(
        transport,
        program,
        this.#listening.place,
        port === undefined ? [] : [port],
      );
      this.#relay = started;
      this.#tested = { ...this.#tested, relay: { ok: true, ...started } };
      void started.closed.then(() => {
        if (this.#relay === started) this.#relay = undefined;
        this.#tested = { ...this.#tested, relay: { ok: false, why: 'it ended' } };
      });
    } catch (thrown) {
      if (!(thrown instanceof GryphusError) || thrown.code !== 'missing-program') throw thrown;
      this.#tested = { ...this.#tested, relay: { ok: false, why: thrown.message } };
    }
  }

  /** The pilots' Node, created from the site's cache in the way their wrapper does it. */
  async #nodeThere(home: string, sha256: string | undefined): Promise<string> {
    const { transport } = this.#options;
    if (sha256 === undefined) throw new GryphusError('missing-program', 'There is no Node for this site.');
    const file = shellQuote(`${home}/cache/${sha256}`);
    const copy = `[ -x ${file}.x ] || { cp -p ${file} ${file}.$$ && chmod 500 ${file}.$$ && mv -f ${file}.$$ ${file}.x; }`;
    const { code } = await transport.run(copy, { timeoutMs: MOST_AGAIN_MS });
    if (code === 0) return `${home}/cache/${sha256}.x`;
    throw new GryphusError('missing-program', `Our Node is not at ${transport.label} yet.`);
  }

  #openMail(home: string): void {
    if (this.#mail !== undefined) return;
    const root = `${home}/mail`;
    const mail = new MailboxStore({
      exchange: mailCarrier(this.#options.transport, root),
      onLink: (_worker, raw) => this.#lead(raw, 'mailbox'),
      onRound: (why) => {
        const ok = why === undefined;
        if (this.#tested.mailbox?.ok === ok) return;
        this.#tested = { ...this.#tested, mailbox: ok ? { ok, directory: root } : { ok, why: why.message } };
        this.#options.onView(this.view);
      },
    });
    this.#mail = mail;
    this.#tested = { ...this.#tested, mailbox: { ok: true, directory: root } };
    void mail.run();
  }

  /** The data is encrypted, so the worker identifies itself only at home. */
  #lead(raw: Duplex, way: 'connection' | 'mailbox'): void {
    this.#links.add(raw);
    raw.once('close', () => this.#links.delete(raw));
    void this.#pass(raw, way);
  }

  async #pass(raw: Duplex, way: 'connection' | 'mailbox'): Promise<void> {
    // It may be cut before it has said a word.
    raw.on('error', () => undefined);
    if ((await this.#options.takeDirect?.(raw)) || raw.destroyed) return;
    this.#came[way]++;
    this.#options.onView(this.view);
    raw.once('close', () => {
      this.#came[way]--;
      this.#options.onView(this.view);
    });
    relay(raw, connect(this.#options.centralManager));
  }

  async #write(home: string): Promise<void> {
    const ways: readonly Way[] = chooseWays(this.#tested).ways;
    const text = JSON.stringify(ways);
    this.#options.onView(this.view);
    if (text === this.#written) return;
    const file = shellQuote(`${home}/ways.json`);
    const { code } = await this.#options.transport.run(
      `umask 077; cat >${file}.new && [ -s ${file}.new ] && mv -f ${file}.new ${file}`,
      { stdin: text, timeoutMs: MOST_AGAIN_MS },
    );
    if (code !== 0) throw new GryphusError('disk-full', `${this.#options.transport.label}: ways.json is not written.`);
    this.#written = text;
  }
}
