import { asError } from '../../errors.ts';
import { appendOnce, sizeOf } from './append-once.ts';
import type { Answer, Ask } from './writer.ts';

/**
 * The process that touches users' logs. A file system that does not answer holds up this process alone, which is then
 * killed; in the Scheduler it would hold up everything that reads or writes a file.
 */
process.on('message', (message) => {
  const ask = message as Ask;
  const answer = (rest: Omit<Answer, 'id'>): void => void process.send?.({ id: ask.id, ...rest });
  const done = ask.does === 'size' ? sizeOf(ask.path) : appendOnce(ask).then(() => undefined);
  done.then(
    (size) => answer(size === undefined ? {} : { size }),
    (thrown: unknown) => answer({ error: asError(thrown).message }),
  );
});

// Whoever asked is gone. An orderly end would wait for the calls under way.
process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'));
