import { PerformanceObserver } from 'node:perf_hooks';
import { Duplex } from 'node:stream';
import type { Client } from 'ssh2';
import { expect, it } from 'vitest';
import { readyForMuch } from '../../src/transport/ssh2-busy.ts';
import { until } from '../agent/agent.ts';

/** The socket of a connection, which notes what is written at once. */
class Noting extends Duplex {
  readonly writes: string[][] = [];
  override _read(): void {
    // Nothing comes.
  }
  override _write(chunk: Buffer, _: string, done: () => void): void {
    this.writes.push([chunk.toString()]);
    done();
  }
  override _writev(chunks: { chunk: Buffer }[], done: () => void): void {
    this.writes.push(chunks.map(({ chunk }) => chunk.toString()));
    done();
  }
}
const over = (socket: Duplex) => readyForMuch({ _sock: socket } as unknown as Client);

it('writes together what is written in one turn, in order', async () => {
  const socket = new Noting();
  over(socket);
  for (const text of ['a', 'b', 'c']) socket.write(Buffer.from(text));
  await new Promise(setImmediate);
  socket.write(Buffer.from('d'));
  await new Promise(setImmediate);
  expect(socket.writes).toEqual([['a', 'b', 'c'], ['d']]);
});

it('gives back the memory of young objects after each four megabytes, both ways', async () => {
  let minor = 0;
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries())
      if ((entry as unknown as { detail: { kind: number } }).detail.kind === 1) minor++;
  });
  observer.observe({ entryTypes: ['gc'] });
  const socket = new Noting();
  over(socket);
  const piece = Buffer.alloc(1 << 20);
  for (let i = 0; i < 16; i++) socket.write(piece);
  for (let i = 0; i < 16; i++) socket.emit('data', piece);
  await until('eight rounds', () => minor >= 8 || undefined);
  observer.disconnect();
});

it('leaves a client alone that has no socket', () => {
  expect(() => readyForMuch({} as Client)).not.toThrow();
});
