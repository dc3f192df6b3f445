import { chmodSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { FastifyInstance } from 'fastify';
import { forgetDaemon, noteDaemon } from '../config/daemon-files.ts';
import { asError, GryphusError } from '../errors.ts';
import { Gryphus } from '../index.ts';
import { WEB } from '../util/daemon.ts';
import { inodeOf, takeName } from '../util/named-socket.ts';
import { ownPackage } from '../util/own-package.ts';
import { ensurePrivateDir, writeWhole } from '../util/private-file.ts';
import { processIdentity } from '../util/process-identity.ts';
import { endOnSignal } from '../util/run-daemon.ts';
import { Access } from './access.ts';
import { Assets } from './assets.ts';
import { webSocketPath } from './control.ts';
import { pageApp, pageSocketApp } from './page-server.ts';
import { servePrograms } from './program-server.ts';
import { Running } from './running.ts';
import { Web } from './web.ts';
import { followTimeZone } from '../util/time-zone.ts';

/** How often it looks whether its socket is still there; milliseconds. */
const LOOK_MS = 5000;

/** Serves the page, or with `--programs SOCKET` its interface alone, to programs at this socket. */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { port: { type: 'string' }, 'socket-only': { type: 'boolean' }, programs: { type: 'string' } },
  });
  followTimeZone();
  const root = resolve(fileURLToPath(new URL('../..', import.meta.url)));
  const web = new Web(await Gryphus.open(), ownPackage(root).version);
  return values.programs === undefined
    ? serveThePage(web, values.port, values['socket-only'] ?? false)
    : serveOnDemand(web, values.programs);
}

/** Until it has been idle, or its state directory goes away. */
async function serveOnDemand(web: Web, socket: string): Promise<void> {
  const { ended, end } = await servePrograms(web, socket);
  endOnSignal(end);
  followEvents(web, end);
  process.stdout.write('ready\n');
  await ended;
  await web.close();
  process.exit(0);
}

function followEvents(web: Web, stop: () => void): void {
  void web.hub.run().catch((thrown: unknown) => {
    process.stderr.write(`${asError(thrown).message}\n`);
    stop();
  });
}

/** Until it is told to stop, or its state directory goes away. */
async function serveThePage(web: Web, asked: string | undefined, socketOnly: boolean): Promise<void> {
  const { paths } = web.gryphus;
  const dir = join(paths.stateDir, 'web');
  ensurePrivateDir(dir);
  const access = new Access(dir);
  const assets = new Assets(fileURLToPath(new URL('../web-page', import.meta.url)));
  let port: number | undefined;
  /** Its inode, once it has the name that all look for. */
  let mine: number | undefined;
  const apps: FastifyInstance[] = [];
  const stop = (): void => void end();
  const common = { web, access, assets, running: new Running() };
  const socket = webSocketPath(paths);
  const own = `${socket}.${process.pid}`;
  const end = async (): Promise<void> => {
    clearInterval(look);
    if (mine !== undefined && inodeOf(socket) === mine) {
      rmSync(socket, { force: true });
      forgetDaemon(paths, WEB);
    }
    await Promise.all(apps.map((app) => app.close()));
    await web.close();
    process.exit(0);
  };
  const look = setInterval(() => {
    if (mine !== undefined && inodeOf(socket) !== mine) stop();
  }, LOOK_MS);
  endOnSignal(stop);
  followEvents(web, stop);
  await web.samples.sample().catch(() => undefined);
  if (!socketOnly) {
    const app = pageApp(common);
    apps.push(app);
    port = await listen(app, asked === undefined ? undefined : Number(asked), join(dir, 'port'));
  }
  const trusted = pageSocketApp(common, { stop, port: () => port });
  apps.push(trusted);
  const before = process.umask(0o177);
  await trusted.listen({ path: own }).finally(() => process.umask(before));
  chmodSync(own, 0o600);
  if (!(await takeName(own, socket))) {
    // Another server was started at the same time.
    process.stdout.write('ready\n');
    return end();
  }
  mine = inodeOf(own);
  rmSync(own);
  if (port !== undefined) writeWhole(join(dir, 'port'), String(port));
  access.publish();
  noteDaemon(paths, WEB, { ...processIdentity(), since: Date.now() });
  process.stdout.write('ready\n');
}

/** At the port that was asked for, or the one of last time, so that open pages find it again, or any that is free. */
async function listen(app: FastifyInstance, asked: number | undefined, file: string): Promise<number> {
  const last = existsSync(file) ? Number(readFileSync(file, 'utf8')) : 0;
  const at = (port: number) => app.listen({ host: '127.0.0.1', port });
  if (asked !== undefined)
    await at(asked).catch((cause: unknown) => {
      throw new GryphusError('conflict', `Port ${asked} cannot be used: ${asError(cause).message}.`, {
        cause,
        suggestions: ['Leave --port out, and a free port is chosen.'],
      });
    });
  else await at(last).catch(() => at(0));
  const [address] = app.addresses();
  return typeof address === 'object' ? address.port : 0;
}

main().catch((thrown: unknown) => {
  const { message } = asError(thrown);
  const { suggestions } = thrown instanceof GryphusError ? thrown : { suggestions: [] };
  process.stderr.write(`${[message, ...suggestions].join('\n  → ')}\n`);
  process.exit(thrown instanceof GryphusError ? thrown.exitCode : 70);
});
