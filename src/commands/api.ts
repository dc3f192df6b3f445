import { createHash } from 'node:crypto';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Flags } from '@oclif/core';
import { GryphusError } from '../errors.ts';
import { ownPackage } from '../util/own-package.ts';
import { socketAnswers } from '../util/socket-answers.ts';
import { GryphusCommand, prose } from './command.ts';
import { startWebServer } from './start-server.ts';

export class Api extends GryphusCommand {
  static override summary = "Serve programs over a unix socket, for example Python's module.";
  static override description =
    prose(`Prints the path of a socket at which a server of this agent answers HTTP requests (docs/protocol.md), and starts the server
and the agent if they do not run. The socket can be used by you alone, and needs no token. The server listens at no port, and ends by itself a minute
after its last client has gone.`);
  static override examples = [
    '<%= config.bin %> api',
    'curl --unix-socket "$(<%= config.bin %> api)" http://gryphus/api/v1/status',
    '<%= config.bin %> api --json',
  ];
  static override flags = {
    json: Flags.boolean({
      summary: 'A JSON object: the socket, and the path of the interface, which has its version.',
    }),
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
    // A server that runs does not know that the agent was ended in the meantime.
    await this.withGryphus(flags, () => Promise.resolve());
    if (!(await socketAnswers(socket))) await this.#start(socket, flags.home);
    process.stdout.write(`${flags.json ? JSON.stringify({ socket, base: '/api/v1', gryphus: version }) : socket}\n`);
  }

  /** Starts a server that outlives this command. */
  async #start(socket: string, home: string | undefined): Promise<void> {
    const { ready, complaint } = await startWebServer(['--programs', socket], home);
    if (ready || (await socketAnswers(socket))) return;
    throw new GryphusError('queue-unavailable', `The server at ${socket} did not start. ${complaint}`.trim());
  }
}
