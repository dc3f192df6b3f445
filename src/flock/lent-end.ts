import type { Report } from '../site/contract.ts';
import type { Of } from './flock-wire.ts';
import type { Lent } from './lent-journal.ts';

/** How the partner learns why we stopped a job of its. */
const STOPPED = {
  lease: { message: 'the partner that asked for it was silent for too long', by: 'lease' },
  agreement: { message: 'the agreement does not let it run here any more' },
} as const;

/** What a partner is told of the end of its job, with both streams if they came with the report. */
export function endOf(
  { round, stopped }: Lent,
  report: Extract<Report, { is: 'ended' }>,
): { readonly message: Of<'ended'>; readonly bytes: Buffer | undefined } {
  const { key, is: _is, run: _run, noFiles, streams, host: _host, ...ending } = report;
  const stdout = Buffer.from(streams?.stdout ?? '', 'base64');
  const stderr = Buffer.from(streams?.stderr ?? '', 'base64');
  const how =
    stopped && ending.how.kind === 'by-site'
      ? ({ kind: 'by-site', cause: 'preempted', ...STOPPED[stopped] } as const)
      : ending.how;
  const message: Of<'ended'> = {
    t: 'ended',
    key,
    round,
    ending: { ...ending, how },
    ...(streams ? { inline: { stdout: stdout.length, stderr: stderr.length } } : {}),
    ...(noFiles ? { noFiles } : {}),
  };
  return { message, bytes: streams ? Buffer.concat([stdout, stderr]) : undefined };
}
