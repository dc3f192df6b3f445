import { chmodSync, existsSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import type * as z from 'zod';
import { asError, GryphusError } from '../../errors.ts';
import type { Gryphus } from '../../index.ts';
import { Inflow } from './inflow.ts';
import { JsonLines } from './lines.ts';
import { CALLS, type Task } from './methods.ts';
import { isMethod, LINE, PROTOCOL } from './requests.ts';

/** Without a client, the server ends after this time; milliseconds. */
const IDLE_MS = 60_000;
/** How often it looks whether its socket is still there; milliseconds. */
const LOOK_MS = 5000;

export interface ServerOptions {
  /** The path of the socket. */
  readonly socket: string;
  readonly version: string;
  readonly open: () => Promise<Gryphus>;
  readonly idleMs?: number;
}

/** Serves the protocol of docs/protocol.md; resolves when it has ended. `ready` is called when clients can connect. */
export async function serve(options: ServerOptions, ready: () => void): Promise<void> {
  const { socket, idleMs = IDLE_MS } = options;
  const clients = new Set<Socket>();
  const server: Server = createServer((client) => {
    clients.add(client);
    client.on('error', () => client.destroy());
    client.once('close', () => {
      clients.delete(client);
      idleSince = Date.now();
    });
    speak(client, options);
  });
  let idleSince = Date.now();
  await listen(server, socket);
  const look = setInterval(() => {
    const idle = clients.size === 0 && Date.now() - idleSince > idleMs;
    if (idle || !existsSync(socket)) end();
  }, LOOK_MS);
  const end = (): void => {
    clearInterval(look);
    server.close();
    for (const client of clients) client.destroy();
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.removeAllListeners(signal).once(signal, end);
  const closed = new Promise<void>((resolve) => server.once('close', resolve));
  ready();
  await closed;
}

/** The socket is its owner's alone from the moment at which it exists. */
async function listen(server: Server, path: string): Promise<void> {
  const before = process.umask(0o177);
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(path, resolve);
    });
    chmodSync(path, 0o600);
  } finally {
    process.umask(before);
  }
}

/** Removes the socket of a server that is dead. */
export function clearAway(path: string): void {
  rmSync(path, { force: true });
}

/** One client. Its requests run at the same time. */
function speak(socket: Socket, options: ServerOptions): void {
  const connection = new Connection(socket, options);
  connection.greet();
}

interface Open {
  readonly stop: AbortController;
  readonly tasks: Inflow<Task>;
}

class Connection {
  readonly #lines: JsonLines;
  readonly #open = new Map<number, Open>();
  readonly #options: ServerOptions;
  #gryphus: Promise<Gryphus> | undefined;

  constructor(socket: Socket, options: ServerOptions) {
    this.#options = options;
    this.#lines = new JsonLines(socket, (line) => this.#take(line));
    socket.once('close', () => void this.#end());
  }

  greet(): void {
    this.#lines.send({ gryphus: this.#options.version, protocol: PROTOCOL });
  }

  #take(text: string): void {
    const line = parsed(text);
    if (line === undefined) {
      this.#lines.send({ id: null, error: plain(new GryphusError('bad-input', 'A line is not of the protocol.')) });
      return;
    }
    if ('method' in line) return void this.#call(line.id, line.method, line.params ?? {});
    const open = this.#open.get(line.id);
    if (!open) return;
    if ('tasks' in line) open.tasks.add(line.tasks);
    else if ('end' in line) open.tasks.close();
    else open.stop.abort();
  }

  async #call(id: number, name: string, given: unknown): Promise<void> {
    if (this.#open.has(id)) return this.#fail(id, new GryphusError('bad-input', `Request ${id} is still open.`));
    const open: Open = { stop: new AbortController(), tasks: new Inflow() };
    this.#open.set(id, open);
    try {
      if (!isMethod(name)) throw new GryphusError('bad-input', `There is no method '${name}'.`);
      this.#gryphus ??= this.#options.open();
      const gryphus = await this.#gryphus.catch((error: unknown) => {
        // The next request tries again.
        this.#gryphus = undefined;
        throw error;
      });
      const event = (json: string): Promise<void> => {
        this.#lines.sendText(`{"id":${id},"event":${json}}`);
        return this.#lines.ready();
      };
      const result = await CALLS[name](given, { gryphus, event, signal: open.stop.signal, tasks: open.tasks });
      this.#lines.send({ id, result });
    } catch (error) {
      this.#fail(id, error);
    } finally {
      this.#open.delete(id);
    }
  }

  #fail(id: number, error: unknown): void {
    this.#lines.send({ id, error: plain(error) });
  }

  async #end(): Promise<void> {
    for (const { stop, tasks } of this.#open.values()) {
      stop.abort();
      tasks.close();
    }
    const gryphus = await this.#gryphus?.catch(() => undefined);
    await gryphus?.close();
  }
}

function parsed(text: string): z.infer<typeof LINE> | undefined {
  try {
    return LINE.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

function plain(error: unknown): { code: string; message: string; suggestions: readonly string[] } {
  if (error instanceof GryphusError) {
    const { code, message, suggestions } = error;
    return { code, message, suggestions };
  }
  return { code: 'internal', message: asError(error).message, suggestions: [] };
}
