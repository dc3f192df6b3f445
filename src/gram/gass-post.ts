import { existsSync, readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import * as z from 'zod';
import type { Credential } from '../credentials/x509/proxy-file.ts';
import type { Trust } from '../credentials/x509/trust.ts';
import { GryphusError } from '../errors.ts';
import { writeWhole } from '../util/private-file.ts';
import { identityOf } from './client.ts';
import { type GassHandler, GassServer } from './gass-server.ts';

const PLACE = z.object({ address: z.string(), port: z.number() });

export interface GassPostOptions {
  /** The directory that stores the server's last address. */
  readonly dir: string;
  readonly gassHandler: GassHandler;
  readonly trust: () => Trust;
  /**
   * `GLOBUS_HOSTNAME`: the name that others reach us by. `GLOBUS_TCP_PORT_RANGE=A,B`: the ports that a firewall leaves
   * open.
   */
  readonly env: NodeJS.ProcessEnv;
  /** A short-lived client that runs beside the GridManager: it uses another port and does not store it. */
  readonly visiting: boolean;
}

/** How long to wait for the port, in milliseconds: our predecessor may still be exiting. */
const PATIENCE_MS = 5000;

/** Keeps our GASS server at the same host and port over restarts because job managers remember it. */
export class GassPost {
  readonly #options: GassPostOptions;
  #server: GassServer | undefined;
  #host = '';

  constructor(options: GassPostOptions) {
    this.#options = options;
  }

  /** The address that the server last had. */
  get lastAddress(): string | undefined {
    return this.#saved()?.address;
  }

  /** `https://host:port` once the server is open. */
  get origin(): string | undefined {
    return this.#server && `https://${this.#host}:${this.#server.port}`;
  }

  /** Opens the server at this local address. */
  async open(credential: Credential, address: string): Promise<string> {
    const saved = this.#saved();
    const last = this.#options.visiting ? undefined : saved?.port;
    const server = this.#server ?? (await this.#listen(credential, address, last));
    this.#server = server;
    const host = this.#options.env['GLOBUS_HOSTNAME'] || address;
    this.#host = isIP(host) === 6 ? `[${host}]` : host;
    if (!this.#options.visiting && (saved?.address !== address || saved.port !== server.port)) {
      writeWhole(this.#file, JSON.stringify({ address, port: server.port }));
    }
    return this.origin ?? '';
  }

  use(credential: Credential): void {
    this.#server?.use(credential);
  }

  async close(): Promise<void> {
    await this.#server?.close();
    this.#server = undefined;
  }

  async #listen(credential: Credential, address: string, last: number | undefined): Promise<GassServer> {
    const { gassHandler, trust } = this.#options;
    const at = (port: number) =>
      GassServer.listen({ gassHandler, trust, identity: identityOf(credential), credential, address, port });
    const again = last === undefined ? undefined : await patiently(() => at(last).catch(inUse));
    if (again) return again;
    for (const port of this.#ports()) {
      const server = await at(port).catch(inUse);
      if (server) return server;
    }
    throw new GryphusError('bad-config', `No port is available for the GASS server at ${address}.`, {
      suggestions: ['Widen GLOBUS_TCP_PORT_RANGE, or unset it.'],
    });
  }

  *#ports(): Generator<number> {
    const [, from, to] =
      /^\s*(\d{1,5})[\s,]+(\d{1,5})\s*$/.exec(this.#options.env['GLOBUS_TCP_PORT_RANGE'] ?? '') ?? [];
    if (from === undefined) yield* quietPorts();
    else for (let port = Number(from); port <= Math.min(Number(to), 65_535); port++) yield port;
  }

  #saved(): z.infer<typeof PLACE> | undefined {
    if (!existsSync(this.#file)) return undefined;
    try {
      return PLACE.parse(JSON.parse(readFileSync(this.#file, 'utf8')));
    } catch {
      return undefined;
    }
  }

  get #file(): string {
    return join(this.#options.dir, 'gass.json');
  }
}

const QUIET_FROM = 10_000;
const QUIET_TO = 32_767;

/** Ports outside the system's range for outgoing connections, which stay free over a restart; at last 0, for any. */
function* quietPorts(): Generator<number> {
  const range = '/proc/sys/net/ipv4/ip_local_port_range';
  const first = existsSync(range) ? Number.parseInt(readFileSync(range, 'utf8'), 10) : QUIET_TO + 1;
  const count = Math.min(first - 1, QUIET_TO) - QUIET_FROM;
  if (count > 0) for (let n = 0; n < 20; n++) yield QUIET_FROM + Math.floor(Math.random() * count);
  yield 0;
}

function inUse(thrown: unknown): undefined {
  if (thrown instanceof GryphusError && thrown.code === 'conflict') return undefined;
  throw thrown;
}

async function patiently<T>(attempt: () => Promise<T | undefined>): Promise<T | undefined> {
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    const found = await attempt();
    if (found !== undefined || performance.now() > until) return found;
    await delay(100);
  }
}
