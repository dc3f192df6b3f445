import { ignoresHangUp } from '../util/hang-up.ts';

/** What the process does when its reader has gone, its output cannot be written, or a signal ends it. */
export function ownStreams(): void {
  for (const stream of [process.stdout, process.stderr]) {
    // Must come before oclif's own listener, which throws.
    stream.prependListener('error', (error: NodeJS.ErrnoException) => {
      // The reader has gone: `gryphus q | head` is not a failure.
      if (error.code === 'EPIPE') process.exit(process.exitCode ?? 0);
      if (stream === process.stdout)
        process.stderr.write(`gryphus: standard output cannot be written: ${error.message}\n`);
      process.exit(74);
    });
  }
  process.once('SIGINT', () => process.exit(130));
  process.once('SIGTERM', () => process.exit(143));
  // The terminal was closed.
  if (!ignoresHangUp()) process.once('SIGHUP', () => process.exit(129));
}
