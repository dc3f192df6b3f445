// `npm start`: from a fresh clone to a sweep of 200 real jobs, and nothing left running.
import { needBuild, needModules, needNode } from './setup.mjs';

needNode();
needModules();
needBuild();
await import('../examples/pi/run.mjs');
