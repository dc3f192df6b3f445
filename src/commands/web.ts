import { hostname } from 'node:os';
import { join } from 'node:path';
import { Flags } from '@oclif/core';
import { GryphusError } from '../errors.ts';
import { writeWhole } from '../util/private-file.ts';
import { socketAnswers } from '../util/socket-answers.ts';
import { spawnApart } from '../util/spawn-apart.ts';
import { GryphusCommand, prose } from './command.ts';
import { startWebServer } from './start-server.ts';
import { ownUser } from '../util/own-user.ts';

export class WebCommand extends GryphusCommand {
  static override summary = 'Show jobs, DAGs, sites, the pool and credentials live in a browser.';
  static override description =
    prose(`Starts a server at 127.0.0.1 if none runs, prints the address of its page and opens it. The address can be opened once,
within ten minutes; the browser is then known until the server ends, at most 30 days. On a machine without a screen it prints the line for ssh that brings
the page to yours. The server ends with --stop and with \`gryphus down\`.`);
  static override examples = [
    '<%= config.bin %> web',
    '<%= config.bin %> web --no-open --port 8787',
    '<%= config.bin %> web --socket',
    '<%= config.bin %> web --stop',
  ];
  static override flags = {
    open: Flags.boolean({
      default: true,
      allowNo: true,
      summary: 'Open the page in a browser (default, if there is a screen).',
    }),
    port: Flags.integer({
      min: 0,
      max: 65_535,
      summary: 'Listen at this port; default: the one of last time, or a free one.',
    }),
    socket: Flags.boolean({ exclusive: ['port'], summary: 'Listen at a unix socket in the state directory only.' }),
    stop: Flags.boolean({ summary: 'End the server.', exclusive: ['port', 'socket'] }),
    json: Flags.boolean({ summary: 'A JSON object: the address, the socket, and the file of the token for programs.' }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(WebCommand);
    const { paths } = await this.configuration(flags);
    const { askTicket, tellServer, webSocketPath } = await import('../web/control.ts');
    const socket = webSocketPath(paths);
    const runs = await socketAnswers(socket);
    if (flags.stop) {
      if (runs) await tellServer(socket, '/control/stop');
      process.stdout.write(runs ? 'The page is no longer served.\n' : 'No page was served.\n');
      return;
    }
    if (!runs) await this.#start(flags);
    const { ticket, port } = await askTicket(socket);
    this.#refuseOther(flags, port);
    const address = port === undefined ? undefined : `http://127.0.0.1:${port}/open?ticket=${ticket}`;
    const screen = hasScreen();
    if (flags.json) {
      const token = join(paths.stateDir, 'web/token');
      process.stdout.write(
        `${JSON.stringify({ ...(address === undefined ? {} : { address, port }), socket, token })}\n`,
      );
    } else if (address === undefined) {
      process.stdout.write(`The page is served at the socket ${socket}\n`);
    } else {
      process.stdout.write(`${address}\n`);
      if (!screen || process.env['SSH_CONNECTION'])
        process.stdout.write(
          `On your own machine, type this first: ssh -L ${port}:127.0.0.1:${port} ${ownUser().username}@${hostname()}\n`,
        );
    }
    if (flags.open && screen && address !== undefined && !flags.json) this.#open(address, paths.stateDir);
  }

  /** Starts a server that outlives this command. */
  async #start(flags: {
    readonly home?: string | undefined;
    readonly port?: number | undefined;
    readonly socket: boolean;
  }) {
    const words = [
      ...(flags.port === undefined ? [] : ['--port', String(flags.port)]),
      ...(flags.socket ? ['--socket-only'] : []),
    ];
    const { ready, complaint } = await startWebServer(words, flags.home);
    if (ready) return;
    const [message = '', ...suggestions] = complaint.split('\n  → ');
    throw new GryphusError('queue-unavailable', message === '' ? 'The server did not start.' : message, {
      suggestions,
    });
  }

  #refuseOther(
    flags: { readonly port?: number | undefined; readonly socket: boolean },
    port: number | undefined,
  ): void {
    const other = flags.socket
      ? port !== undefined
      : flags.port !== undefined && flags.port !== 0 && flags.port !== port;
    if (!other) return;
    const where = port === undefined ? 'its socket only' : `port ${port}`;
    throw new GryphusError('conflict', `The page is served already, at ${where}.`, {
      suggestions: ['Use it there, or end it first: gryphus web --stop'],
    });
  }

  /** Through a file that only the user can read, because others see the words of every command. */
  #open(address: string, stateDir: string): void {
    const file = join(stateDir, 'web/open.html');
    writeWhole(file, `<!doctype html><title>Gryphus</title><meta http-equiv="refresh" content="0; url=${address}">\n`);
    const opener = process.platform === 'darwin' ? 'open' : 'xdg-open';
    const child = spawnApart(opener, [file], { stdio: 'ignore' });
    // Without a browser, the address is printed.
    child.once('error', () => undefined);
    child.unref();
  }
}

function hasScreen(): boolean {
  const { DISPLAY, WAYLAND_DISPLAY } = process.env;
  return process.platform === 'darwin' || Boolean(DISPLAY) || Boolean(WAYLAND_DISPLAY);
}
