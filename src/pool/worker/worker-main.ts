import { dirname, join, resolve } from 'node:path';
import { asError } from '../../errors.ts';
import { FOR_PROGRAMS, only } from '../../util/environments.ts';
import ends from '../../util/ends.sh';
import common from './launchers/common.sh';
import batchscript from './launchers/batchscript.sh';
import mpichscript from './launchers/mpichscript.sh';
import openmpiscript from './launchers/openmpiscript.sh';
import rsh from './launchers/gryphus-rsh.sh';
import taskRunner from './task-runner.sh';
import starter from './starter.sh';
import waiter from './waiter/waiter.sh';
import { findCheckpointHelper } from '../host/checkpoint-helper.ts';
import { findRemoteIo } from '../host/remote-io-helper.ts';
import { findEngines } from './engines/engines.ts';
import { runWorker, WORKER_EXIT } from './worker.ts';
import { readWorkerConfig } from '../wire/worker-config.ts';
import { followTimeZone } from '../../util/time-zone.ts';

/*
 * A worker's process, `node worker.mjs CONFIG`: bundled into one file that needs only Node. It logs one line per change
 * to standard error.
 */

/** The part of the worker's environment that jobs see. */
const FOR_JOBS = [...FOR_PROGRAMS, 'SLURM_*', 'CUDA_VISIBLE_DEVICES'];

const HERE = dirname(resolve(process.argv[1] ?? ''));

async function main(file: string): Promise<number> {
  const env = only(process.env, FOR_JOBS);
  const log = (message: string) => process.stderr.write(`${new Date().toISOString()} ${message}\n`);
  const config = readWorkerConfig(file);
  // A pilot has all its files in one directory.
  const native = join(HERE, 'native', process.arch);
  const helper = findCheckpointHelper(native, HERE);
  const { exit, message } = await runWorker(config, {
    file,
    scripts: { starter, taskRunner, waiter, ends },
    launchers: { rsh, common, mpichscript, openmpiscript, batchscript },
    env,
    environment: process.env,
    checkpoints: await findEngines(config.checkpointEngines, helper),
    remoteIo: findRemoteIo(native, HERE),
    log,
  });
  log(`exits: ${message}`);
  return exit;
}

followTimeZone();
process.stderr.on('error', () => undefined);
const file = process.argv[2];
if (file === undefined) {
  process.stderr.write('usage: node worker.mjs CONFIG\n');
  process.exit(2);
}
main(file).then(
  (exit) => process.exit(exit),
  (thrown: unknown) => {
    process.stderr.write(`${asError(thrown).message}\n`);
    process.exit(WORKER_EXIT.broken);
  },
);
