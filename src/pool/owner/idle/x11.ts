import { readdirSync } from 'node:fs';
import { createConnection, type Socket } from 'node:net';
import { join } from 'node:path';
import type { IdleSource, Reading } from './source.ts';
import { COOKIE, cookiesFor } from './xauthority.ts';
import {
  extensionAnswer,
  extensionRequest,
  idleAnswer,
  idleRequest,
  MESSAGE,
  setupAnswer,
  setupLength,
  setupRequest,
} from './x11-protocol.ts';

/** How long a display that could not be opened is left alone, in seconds. */
const REST = 60;
/** The most that a server may say before it is left alone: its answer to the setup is some kilobytes. */
const MOST = 1 << 20;

type Answered = (idle: number, before: number | undefined) => void;

interface Answer {
  readonly at: number;
  readonly idle: number;
}

/** One X display: its connection stays open, and each look asks once. */
class Display {
  readonly #path: string;
  readonly #cookies: (Buffer | undefined)[];
  readonly #answered: Answered;
  #socket: Socket | undefined;
  #bytes = Buffer.alloc(0);
  #root: number | undefined;
  #opcode: number | undefined;
  #askedAt: number | undefined;
  answer: Answer | undefined;
  trouble = 'it has not answered yet';
  /** It is left alone since then. */
  restsSince: number | undefined;

  constructor(path: string, cookies: (Buffer | undefined)[], answered: Answered) {
    this.#path = path;
    this.#cookies = cookies;
    this.#answered = answered;
    this.#open();
  }

  ask(at: number): void {
    if (this.#root === undefined || this.#opcode === undefined || this.#askedAt !== undefined) return;
    this.#askedAt = at;
    this.#socket?.write(idleRequest(this.#opcode, this.#root));
  }

  close(): void {
    this.#socket?.destroy();
  }

  #open(): void {
    this.#bytes = Buffer.alloc(0);
    this.#root = this.#opcode = this.#askedAt = undefined;
    const cookie = this.#cookies.shift();
    const socket = createConnection({ path: this.#path });
    this.#socket = socket;
    socket.unref();
    socket.on('connect', () =>
      socket.write(setupRequest(cookie === undefined ? '' : COOKIE, cookie ?? Buffer.alloc(0))),
    );
    socket.on('data', (bytes: Buffer) => this.#take(bytes));
    socket.on('error', (error) => this.#fail(socket, error.message));
    socket.on('close', () => this.#fail(socket, this.trouble));
  }

  #fail(socket: Socket, trouble: string): void {
    socket.destroy();
    if (this.#socket !== socket) return;
    this.trouble = trouble;
    if (this.#root === undefined && this.#cookies.length > 0) return this.#open();
    this.#socket = undefined;
    this.answer = undefined;
    this.restsSince ??= performance.now() / 1000;
  }

  #take(bytes: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, bytes]);
    const socket = this.#socket;
    if (!socket) return;
    if (this.#bytes.length > MOST) return this.#fail(socket, 'it sent too much data');
    if (this.#root === undefined && !this.#begin(socket)) return;
    while (this.#bytes.length >= MESSAGE) {
      const message = this.#bytes.subarray(0, MESSAGE);
      const more = message.readUInt8(0) === 1 ? 4 * message.readUInt32LE(4) : 0;
      if (this.#bytes.length < MESSAGE + more) return;
      this.#bytes = this.#bytes.subarray(MESSAGE + more);
      if (message.readUInt8(0) === 1) this.#hear(socket, message);
      else if (message.readUInt8(0) === 0) return this.#fail(socket, 'it rejected the request');
    }
  }

  /** False until the answer to the setup is whole. */
  #begin(socket: Socket): boolean {
    const length = setupLength(this.#bytes);
    if (length === undefined || this.#bytes.length < length) return false;
    const answer = setupAnswer(this.#bytes.subarray(0, length));
    this.#bytes = this.#bytes.subarray(length);
    if ('refused' in answer) {
      this.#fail(socket, answer.refused || 'it refused the connection');
      return false;
    }
    this.#root = answer.root;
    socket.write(extensionRequest());
    return true;
  }

  #hear(socket: Socket, message: Buffer): void {
    if (this.#opcode === undefined) {
      this.#opcode = extensionAnswer(message);
      if (this.#opcode === undefined) this.#fail(socket, 'it lacks the MIT-SCREEN-SAVER extension');
      else this.ask(performance.now() / 1000);
      return;
    }
    const before = this.answer?.idle;
    this.#askedAt = undefined;
    this.answer = { at: performance.now() / 1000, idle: idleAnswer(message) / 1000 };
    this.#answered(this.answer.idle, before);
  }
}

/** X displays of this machine, through their sockets. */
export class X11 implements IdleSource {
  readonly name = 'X11';
  readonly #dir: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #changed: () => void;
  readonly #displays = new Map<string, Display>();

  /** `changed`: called when an answer shows activity. */
  constructor(changed: () => void = () => undefined, env: NodeJS.ProcessEnv = process.env, dir = '/tmp/.X11-unix') {
    this.#changed = changed;
    this.#env = env;
    this.#dir = dir;
  }

  look(): Reading {
    const now = performance.now() / 1000;
    const names = socketsIn(this.#dir);
    for (const [name, display] of this.#displays) {
      const rested = display.restsSince !== undefined && now - display.restsSince > REST;
      if (names.includes(name) && !rested) continue;
      display.close();
      this.#displays.delete(name);
    }
    for (const name of names) {
      if (!this.#displays.has(name)) this.#displays.set(name, this.#openDisplay(name));
      this.#displays.get(name)?.ask(now);
    }
    const answers = [...this.#displays.values()].flatMap(({ answer }) => (answer ? [answer] : []));
    if (answers.length === 0) {
      const troubles = [...this.#displays].map(([name, { trouble }]) => `:${name.slice(1)}: ${trouble}`);
      return { sees: false, note: troubles.length === 0 ? 'there is no X server here' : troubles.join('; ') };
    }
    const idle = Math.min(...answers.map((answer) => answer.idle + Math.max(0, now - answer.at)));
    return {
      sees: true,
      idle,
      console: idle,
      note: [...this.#displays.keys()].map((name) => `:${name.slice(1)}`).join(', '),
    };
  }

  close(): void {
    for (const display of this.#displays.values()) display.close();
    this.#displays.clear();
  }

  #openDisplay(name: string): Display {
    return new Display(join(this.#dir, name), cookiesFor(name.slice(1), this.#env), (idle, before) => {
      if (before === undefined || idle < before) this.#changed();
    });
  }
}

function socketsIn(dir: string): string[] {
  try {
    return readdirSync(dir).filter((name) => /^X\d+$/.test(name));
  } catch {
    return [];
  }
}
