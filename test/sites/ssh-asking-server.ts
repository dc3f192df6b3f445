import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import ssh2 from 'ssh2';

/** A server on loopback that asks for a password and a one-time code, like sites with two factors. */
export interface AskingServer {
  readonly port: number;
  /** How many one-time codes were requested so far. */
  asked(): number;
  cut(): void;
  stop(): Promise<void>;
}

/**
 * Each code is valid once: `code-1`, `code-2`, …; `keyFirst` requires any public key before it asks; `asks` replaces the
 * text of its first question and its instructions.
 */
export async function startAskingServer(
  hostKeyFile: string,
  options: { readonly keyFirst?: boolean; readonly asks?: string } = {},
): Promise<AskingServer> {
  let asked = 0;
  const clients = new Set<ssh2.Connection>();
  const server = new ssh2.Server({ hostKeys: [readFileSync(hostKeyFile)] }, (client) => {
    clients.add(client);
    let keyed = options.keyFirst !== true;
    client.on('error', () => undefined);
    client.on('close', () => clients.delete(client));
    client.on('authentication', (context) => {
      if (context.method === 'publickey' && !keyed) {
        if (context.signature === undefined) return context.accept();
        keyed = true;
        return context.reject(['keyboard-interactive'], true);
      }
      if (context.method !== 'keyboard-interactive' || !keyed) {
        return context.reject(keyed ? ['keyboard-interactive'] : ['publickey']);
      }
      asked++;
      const code = `code-${asked}`;
      const questions = [
        { prompt: options.asks ?? 'Password: ', echo: false },
        { prompt: 'Verification code: ', echo: true },
      ];
      return context.prompt(questions, 'Two factors', options.asks ?? 'Use your token.', (answers) => {
        if (answers[0] === 'secret' && answers[1] === code) context.accept();
        else context.reject(['keyboard-interactive']);
      });
    });
    client.on('session', (accept) => {
      accept().on('exec', (acceptExec, _reject, { command }) => {
        const channel = acceptExec();
        const child = spawn('/bin/sh', ['-c', command]);
        channel.pipe(child.stdin);
        child.stdin.on('error', () => undefined);
        child.stdout.pipe(channel, { end: false });
        child.stderr.pipe(channel.stderr, { end: false });
        child.on('close', (status) => {
          channel.exit(status ?? 1);
          channel.end();
        });
      });
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as { port: number }).port,
    asked: () => asked,
    cut: () => {
      for (const client of clients) client.end();
    },
    stop: () =>
      new Promise((resolve) => {
        for (const client of clients) client.end();
        server.close(() => resolve());
      }),
  };
}
