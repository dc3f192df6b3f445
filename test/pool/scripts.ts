import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Scripts } from '../../src/pool/worker/worker-claims.ts';

const text = (name: string) => readFileSync(join(import.meta.dirname, '../../src', name), 'utf8');

/** The contents of a worker's file. */
export const SCRIPTS: Scripts = {
  starter: text('pool/worker/starter.sh'),
  taskRunner: text('pool/worker/task-runner.sh'),
  waiter: text('pool/worker/waiter/waiter.sh'),
  ends: text('util/ends.sh'),
};
