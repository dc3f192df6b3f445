import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, connect, type Socket } from 'node:net';
import { join } from 'node:path';

export interface StepProxy {
  /** For `QueueOptions.url`, or $REDIS_URL. */
  readonly url: string;
  /** Done before each exchange reaches Redis, and again before its answer is returned. */
  step: () => Promise<void>;
  close(): void;
}

/**
 * Placed before a Redis: for every request of a reader, `step` runs before Redis sees it and again before the reader
 * sees the answer, so that things change between any two of its requests. Calls that wait at the server are not
 * stepped.
 */
export async function stepProxy(socket: string): Promise<StepProxy> {
  const dir = mkdtempSync('/tmp/gsp-');
  const path = join(dir, 's');
  const open = new Set<Socket>();
  const proxy: StepProxy = {
    url: `unix://${path}`,
    step: async () => undefined,
    close: () => {
      server.close();
      for (const one of open) one.destroy();
      rmSync(dir, { recursive: true, force: true });
    },
  };
  const server = createServer((reader) => {
    const redis = connect(socket);
    for (const one of [reader, redis]) {
      open.add(one);
      one.on('error', () => undefined);
    }
    pass(reader, redis, () => proxy.step());
    pass(redis, reader, () => proxy.step());
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return proxy;
}

function pass(from: Socket, to: Socket, step: () => Promise<void>): void {
  let turn = Promise.resolve();
  from.on('data', (bytes) => {
    turn = turn.then(async () => {
      await step();
      to.write(bytes);
    });
  });
  from.once('close', () => void turn.then(() => to.end()));
}
