import { createHash } from 'node:crypto';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Flags } from '@oclif/core';
import { GryphusError } from '../errors.ts';
import { ownPackage } from '../util/own-package.ts';
import { socketAnswers } from '../util/socket-answers.ts';
import { GryphusCommand, prose } from './command.ts';
import { startServer } from './start-server.ts';

export class Api extends GryphusCommand {
  static override summary = "Serve programs over a unix socket, for example Python's module.";
  static override description =
    prose(`Prints the path of a socket on which a server of this agent answers requests in JSON (docs/protocol.md), and starts the server
if none runs. The socket can be used by you alone. The server ends by itself a minute after its last client has gone.`);
  static override examples = ['<%= config.bin %> api', '<%= config.bin %> api --json'];
  static override flags = {
    json: Flags.boolean({ summary: 'A JSON object: the socket, and the version of the protocol.' }),
    serve: Flags.boolean({ hidden: true }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Api);
    const { paths } = await this.configuration(flags);
    const version = ownPackage(resolve(dirname(fileURLToPath(import.meta.url)), '../..')).version;
    // A server of another build speaks at a socket of its own.
    const build = createHash('sha256')
      .update(`${version} ${process.argv[1] ?? ''}`)
      .digest('hex')
      .slice(0, 8);
    const socket = join(paths.socketDir, `api-${build}`);
    if (flags.serve) return this.#serve(socket, version, flags.home);
    if (!(await socketAnswers(socket))) await this.#start(socket, flags.home);
    const { PROTOCOL } = await import('./api/requests.ts');
    process.stdout.write(`${flags.json ? JSON.stringify({ socket, protocol: PROTOCOL, gryphus: version }) : socket}\n`);
  }

  async #serve(socket: string, version: string, home: string | undefined): Promise<void> {
    const { clearAway, serve } = await import('./api/server.ts');
    const { Gryphus } = await import('../index.ts');
    if (await socketAnswers(socket)) return void process.stdout.write('ready\n');
    clearAway(socket);
    const open = () => Gryphus.open(this.openOptions({ home }));
    await serve({ socket, version, open }, () => process.stdout.write('ready\n'));
  }

  /** Starts a server that outlives this command. */
  async #start(socket: string, home: string | undefined): Promise<void> {
    const { Gryphus } = await import('../index.ts');
    // Makes the directories, and says early why the agent cannot be used.
    await (await Gryphus.open(this.openOptions({ home }))).close();
    const words = [process.argv[1] ?? '', 'api', '--serve', ...(home === undefined ? [] : ['--home', resolve(home)])];
    const { ready, complaint } = await startServer(words, home);
    if (ready || (await socketAnswers(socket))) return;
    throw new GryphusError('site-unreachable', `The server at ${socket} did not start. ${complaint}`.trim());
  }
}
