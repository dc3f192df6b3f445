import { statSync, writeFileSync } from 'node:fs';
import { socketAnswers } from '../util/socket-answers.ts';
import { spawnApart } from '../util/spawn-apart.ts';
import { clientPath } from './client-path.ts';
import { commandPlaces } from './places.ts';

/** A second call within this time, in milliseconds, may be one of a loop. */
const OFTEN_MS = 60_000;
/** How long a server may take to start. */
const START_MS = 10_000;

/** After a command that a server would have answered: starts one, without waiting for it, if such commands are called often. */
export async function startIfOften(): Promise<void> {
  if (clientPath() === undefined) return;
  const places = commandPlaces();
  if (places === undefined) return;
  const isOften = isYounger(places.called, OFTEN_MS);
  writeFileSync(places.called, '', { mode: 0o600 });
  if (!isOften || isYounger(places.started, START_MS) || (await socketAnswers(places.socket))) return;
  writeFileSync(places.started, '', { mode: 0o600 });
  const server = [process.argv[1] ?? '', 'compat', 'serve'];
  spawnApart(process.execPath, server, { stdio: 'ignore', cwd: '/' })
    .on('error', () => undefined)
    .unref();
}

function isYounger(file: string, ms: number): boolean {
  const age = Date.now() - (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0);
  return age >= 0 && age < ms;
}
