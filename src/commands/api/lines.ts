import type { Socket } from 'node:net';
import { StringDecoder } from 'node:string_decoder';

/** A line longer than this ends the connection: no request is; characters. */
const LONGEST = 64 * 2 ** 20;

/** Writes and reads JSON values, one on each line. */
export class JsonLines {
  readonly #socket: Socket;

  constructor(socket: Socket, take: (line: string) => void) {
    this.#socket = socket;
    const decoder = new StringDecoder('utf8');
    let held = '';
    socket.on('data', (chunk: Buffer) => {
      const lines = decoder.write(chunk).split('\n');
      lines[0] = held + (lines[0] ?? '');
      held = lines.pop() ?? '';
      for (const line of lines) if (line !== '') take(line);
      if (held.length > LONGEST) socket.destroy();
    });
  }

  send(value: unknown): void {
    this.sendText(JSON.stringify(value));
  }

  /** `text`: JSON without line ends. */
  sendText(text: string): void {
    if (!this.#socket.destroyed) this.#socket.write(`${text}\n`);
  }

  /** Resolves when the reader has taken most of what was sent. */
  async ready(): Promise<void> {
    if (!this.#socket.writableNeedDrain || this.#socket.destroyed) return;
    await new Promise<void>((resolve) => {
      const go = () => {
        this.#socket.off('drain', go).off('close', go);
        resolve();
      };
      this.#socket.on('drain', go).on('close', go);
    });
  }
}
