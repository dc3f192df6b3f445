import { chmodSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { Writable } from 'node:stream';
import { forgetDaemon, noteDaemon } from '../config/daemon-files.ts';
import { COMMAND_SERVER } from '../util/daemon.ts';
import { inodeOf, takeName } from '../util/named-socket.ts';
import { processIdentity } from '../util/process-identity.ts';
import { endOnSignal } from '../util/run-daemon.ts';
import { commandPlaces } from './places.ts';
import { frame, lengthOf, parseRequest, type Request } from './protocol.ts';
import { Elsewhere, isServed } from './served.ts';
import { followTimeZone } from '../util/time-zone.ts';

/** Without a command for so long, it ends; milliseconds. */
const IDLE_MS = 300_000;
/** How often it looks whether its socket is still there. */
const LOOK_MS = 5000;
/** A command that has waited for so long for those before it is run by its own process. */
const PATIENCE_MS = 200;
/** More memory than this is given back by ending. */
const MOST_MEMORY = 500 << 20;

/** Variables that a running process does not follow: Node keeps what depends on them. */
const FIXED = /^(?:TZ|LANG|LANGUAGE|LC_.*|NODE_.*|SSL_CERT_.*)$/;

type Run = (words: readonly string[]) => Promise<void>;

interface Asked {
  readonly request: Request;
  readonly socket: Socket;
}

/**
 * Serves commands that other programs call in loops, each as a process of its own would run it: its directory, its variables, its mask and
 * its outputs are those of the caller. It runs one at a time, since a process has one of each of these. Resolves when it has nothing more to do.
 */
export async function serveCommands(run: Run): Promise<void> {
  const places = commandPlaces();
  if (places === undefined) return;
  const server = new CommandServer(run);
  const own = `${places.socket}.${process.pid}`;
  const listener = createServer((socket) => server.accept(socket));
  const before = process.umask(0o177);
  await new Promise<void>((listening, failed) => {
    listener.once('error', failed).listen(own, listening);
  }).finally(() => process.umask(before));
  chmodSync(own, 0o600);
  const mine = inodeOf(own);
  const isOurs = await takeName(own, places.socket).finally(() => rmSync(own, { force: true }));
  if (isOurs) {
    noteDaemon(places, COMMAND_SERVER, { ...processIdentity(), since: Date.now() });
    followTimeZone();
    endOnSignal(() => server.end());
    const look = setInterval(() => inodeOf(places.socket) === mine || server.end(), LOOK_MS);
    await server.ended;
    clearInterval(look);
    if (inodeOf(places.socket) === mine) {
      rmSync(places.socket, { force: true });
      forgetDaemon(places, COMMAND_SERVER);
    }
  }
  listener.close();
}

class CommandServer {
  readonly #run: Run;
  readonly #waiting: Asked[] = [];
  readonly #built = builtOf();
  readonly #fixed = fixedOf(process.env);
  readonly #idle = setTimeout(() => this.end(), IDLE_MS);
  readonly ended: Promise<void>;
  #end: () => void = () => undefined;
  #isBusy = false;

  constructor(run: Run) {
    this.#run = run;
    this.ended = new Promise((end) => (this.#end = end));
    Object.defineProperty(process, 'stdin', { value: STDIN });
  }

  /** Those that still wait are run by their own processes. */
  end(): void {
    clearTimeout(this.#idle);
    for (const { socket } of this.#waiting.splice(0)) socket.end(frame('elsewhere'));
    if (!this.#isBusy) this.#end();
  }

  accept(socket: Socket): void {
    const parts: Buffer[] = [];
    let size = 0;
    socket.on('error', () => socket.destroy());
    const take = (part: Buffer): void => {
      parts.push(part);
      size += part.length;
      const all =
        size < 4
          ? undefined
          : lengthOf(parts[0] !== undefined && parts[0].length >= 4 ? parts[0] : Buffer.concat(parts));
      if (all === undefined || size < all) {
        if (all === Number.POSITIVE_INFINITY) socket.destroy();
        return;
      }
      socket.off('data', take).resume();
      const request = parseRequest(Buffer.concat(parts));
      if (request === undefined) socket.end(frame('elsewhere'));
      else this.#ask({ request, socket });
    };
    socket.on('data', take);
  }

  #ask(asked: Asked): void {
    this.#waiting.push(asked);
    if (!this.#isBusy) return void this.#work();
    setTimeout(() => {
      const at = this.#waiting.indexOf(asked);
      if (at < 0) return;
      this.#waiting.splice(at, 1);
      asked.socket.end(frame('elsewhere'));
    }, PATIENCE_MS);
  }

  async #work(): Promise<void> {
    this.#isBusy = true;
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) await this.#serve(next);
    this.#isBusy = false;
    const isOver = this.#built !== builtOf() || process.memoryUsage.rss() > MOST_MEMORY;
    if (isOver) this.end();
    else this.#idle.refresh();
  }

  async #serve({ request, socket }: Asked): Promise<void> {
    const isSame = request.script === process.argv[1] && this.#built === builtOf();
    if (!isSame || !isServed(request.words) || fixedOf(request.env) !== this.#fixed || !enter(request))
      return void socket.end(frame('elsewhere'));
    const own = { stdout: process.stdout, stderr: process.stderr };
    setStreams(output(socket, 'stdout', request.stdout, request.columns), output(socket, 'stderr', request.stderr, 0));
    process.exitCode = undefined;
    socket.write(frame('taken'));
    try {
      await this.#run(request.words);
      socket.end(frame('status', exitStatus()));
    } catch (thrown) {
      if (!(thrown instanceof Elsewhere)) throw thrown;
      socket.end(frame('elsewhere'));
    } finally {
      process.exitCode = undefined;
      setStreams(own.stdout, own.stderr);
      process.chdir('/');
    }
  }
}

/** What the command has set. */
function exitStatus(): number {
  return Number(process.exitCode ?? 0);
}

/** Puts this process where the caller is; false if it cannot be there. */
function enter({ cwd, umask, env }: Request): boolean {
  try {
    process.chdir(cwd);
  } catch {
    return false;
  }
  process.umask(umask);
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
  for (const [name, value] of Object.entries(env)) if (process.env[name] !== value) process.env[name] = value;
  return true;
}

/** Standard input is the caller's, which only its own process can read. */
const STDIN = {
  isTTY: false,
  [Symbol.asyncIterator]: () => {
    throw new Elsewhere();
  },
};

function setStreams(stdout: Writable, stderr: Writable): void {
  Object.defineProperty(process, 'stdout', { value: stdout, configurable: true });
  Object.defineProperty(process, 'stderr', { value: stderr, configurable: true });
}

/** An output of the caller. What is written after it has gone is dropped. */
function output(socket: Socket, kind: 'stdout' | 'stderr', isTerminal: boolean, columns: number): Writable {
  const stream = new Writable({
    decodeStrings: true,
    write(chunk: Buffer, _, done) {
      if (socket.destroyed || socket.write(frame(kind, chunk))) return done();
      const go = (): void => {
        socket.off('drain', go).off('close', go);
        done();
      };
      socket.on('drain', go).on('close', go);
    },
  });
  return Object.assign(stream, isTerminal ? { isTTY: true, ...(columns > 0 ? { columns } : {}) } : {});
}

function fixedOf(env: NodeJS.ProcessEnv): string {
  const names = Object.keys(env).filter((name) => FIXED.test(name));
  return JSON.stringify(names.toSorted((a, b) => (a < b ? -1 : 1)).map((name) => [name, env[name]]));
}

/** When the build that this process runs was made; '' if it has gone. */
function builtOf(): string {
  const file = join(dirname(process.argv[1] ?? ''), '../.built');
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}
