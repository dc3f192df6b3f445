import { asError } from '../../errors.ts';
import { appendOnce, sizeOf } from './append-once.ts';
import { type WriterAnswer, ASK } from './writer-messages.ts';

/**
 * The process that accesses users' logs. A file system that does not answer blocks only this process, which is then
 * killed; in the Scheduler it would block all file access.
 */
process.on('message', (message) => {
  const ask = ASK.parse(message);
  const answer = (rest: Omit<WriterAnswer, 'id'>): void => void process.send?.({ id: ask.id, ...rest });
  const done = ask.does === 'size' ? sizeOf(ask.path) : appendOnce(ask).then(() => undefined);
  done.then(
    (size) => answer(size === undefined ? {} : { size }),
    (thrown: unknown) => answer({ error: asError(thrown).message }),
  );
});

// The parent is gone. A regular exit would wait for pending calls.
process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'));
