import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import * as z from 'zod';
import type { Gryphus } from '../index.ts';

/** The socket at which the server is told what only its user can say, and serves its interface without a token. */
export function webSocketPath({ socketDir }: Pick<Gryphus['paths'], 'socketDir'>): string {
  return join(socketDir, 'web');
}

const TICKET = z.object({ ticket: z.string(), port: z.number().optional() });

/** Asks the running server for a word that opens the page once, and its port; without one, it listens at its socket only. */
export async function askTicket(socketPath: string): Promise<z.infer<typeof TICKET>> {
  return TICKET.parse(JSON.parse(await tellServer(socketPath, '/control/ticket')));
}

/** Sends a server what only its user can say; rejects if none listens at the socket. */
export function tellServer(socketPath: string, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = httpRequest({ socketPath, path, method: 'POST' }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (some: string) => (text += some));
      response.once('end', () => resolve(text)).once('error', reject);
    });
    asked.once('error', reject).end();
  });
}
