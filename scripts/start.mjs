// `npm start`: from a fresh clone to a sweep of 200 real jobs, leaving nothing running.
import { homedir } from 'node:os';
import { join } from 'node:path';
import { needBuild, needModules, root } from './setup.mjs';

needModules();
needBuild();
await import('../examples/pi/run.mjs');
if (!process.exitCode) {
  const bin = join(homedir(), '.local/bin');
  const later = (process.env.PATH ?? '').split(':').includes(bin) ? '' : '   # on PATH from the next log-in';
  console.log(`
Nothing is left running. To go on, put \`gryphus\` on your PATH and run a job of your own:
  mkdir -p ~/.local/bin && ln -sf ${shown(join(root, 'dist/bin/gryphus.js'))} ~/.local/bin/gryphus${later}
  gryphus site add NAME ssh://USER@HOST   # a cluster or server that you may use; README.md shows a first job there
  gryphus --help`);
}

/** A quoted word for a shell. */
function shown(path) {
  return /^[\w./+-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
