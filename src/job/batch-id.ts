import { readString, type TextSource } from './values.ts';

/** The batch system's id in a job's `GridJobId`; `undefined` if it is not known, or the job is at no batch system. */
export function batchIdOf(attrs: TextSource): string | undefined {
  const [kind, , , , id] = (readString(attrs, 'GridJobId') ?? '').split(' ');
  return kind === 'batch' ? id : undefined;
}
