import { connect, createServer } from 'node:net';
import type { Duplex } from 'node:stream';

/** Two ends of one real connection on loopback. */
export async function socketPair(): Promise<readonly [Duplex, Duplex]> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const accepted = new Promise<Duplex>((resolve) => server.once('connection', resolve));
  const client = connect(address.port, '127.0.0.1');
  const far = await accepted;
  server.close();
  return [client, far];
}

/** Everything that a stream yields until it ends. */
export async function everything(stream: Duplex): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** The next `count` bytes. */
export async function bytes(stream: Duplex, count: number): Promise<Buffer> {
  let got = Buffer.alloc(0);
  return await new Promise((resolve, reject) => {
    const onData = (chunk: Buffer): void => {
      got = Buffer.concat([got, chunk]);
      if (got.length < count) return;
      stream.pause();
      stream.off('data', onData);
      resolve(got);
    };
    stream.on('data', onData);
    stream.once('error', reject);
    stream.once('close', () => reject(new Error(`closed after ${got.length} bytes of ${count}`)));
  });
}
