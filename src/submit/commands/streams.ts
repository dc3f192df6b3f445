import { booleanOf } from '../calculate.ts';
import type { JobMaker, Step } from '../maker.ts';
import { isUrl } from '../maker.ts';
import { UNIVERSE } from '../../job/universe.ts';

interface Stream {
  readonly command: string;
  readonly alias: string;
  readonly attribute: string;
  readonly transfer: readonly [command: string, attribute: string];
  readonly stream: readonly [command: string, attribute: string];
}

const STREAMS: readonly Stream[] = [
  {
    command: 'input',
    alias: 'stdin',
    attribute: 'In',
    transfer: ['transfer_input', 'TransferIn'],
    stream: ['stream_input', 'StreamIn'],
  },
  {
    command: 'output',
    alias: 'stdout',
    attribute: 'Out',
    transfer: ['transfer_output', 'TransferOut'],
    stream: ['stream_output', 'StreamOut'],
  },
  {
    command: 'error',
    alias: 'stderr',
    attribute: 'Err',
    transfer: ['transfer_error', 'TransferErr'],
    stream: ['stream_error', 'StreamErr'],
  },
];

export const NOTHING = '/dev/null';

/** `skip_filechecks`: what to do about missing or unreadable files. */
export function fileChecks(job: JobMaker): 'refuse' | 'warn' | 'none' {
  const text = job.param('skip_filechecks');
  if (text === undefined) return 'refuse';
  if (text.toLowerCase() === 'warn') return 'warn';
  const skip = booleanOf(text);
  if (skip !== undefined) return skip ? 'none' : 'refuse';
  throw job.fault('skip_filechecks', `skip_filechecks=${text} is invalid, must be 'warn' or a boolean`);
}

/** Whether to check the job's files: not for jobs of a cloud, and not in universes that do not run here. */
export function runsHere(job: JobMaker): boolean {
  const { universe } = job.kind;
  const runs = [UNIVERSE.vanilla, UNIVERSE.grid, UNIVERSE.local, UNIVERSE.scheduler].some(
    (known) => known === universe,
  );
  return runs && !['ec2', 'gce', 'azure', 'arc'].includes(job.gridType);
}

/** A file that the job reads must exist, or the problem would only be noticed at the site. */
export function checkInput(job: JobMaker, name: string, command: string, other?: string): void {
  if (!job.scope.policy.checkInputs || job.scope.late || name === NOTHING || isUrl(name)) return;
  const checks = fileChecks(job);
  if (!runsHere(job) || name.includes('$$(') || checks === 'none') return;
  const path = job.fullPath(name);
  const facts = job.world.look(path);
  if (facts?.readable) return;
  const text = `Can't open "${path}" for reading: ${facts ? 'Permission denied' : 'No such file or directory'}`;
  if (checks === 'warn') job.warn(text, command);
  else job.scope.missing.addInput(job.placeOf(command, other), text);
}

function setStream(job: JobMaker, { command, alias, attribute, transfer, stream }: Stream): void {
  const before = job.draft.bool(transfer[1]) ?? true;
  const wanted = job.boolParam(...transfer) ?? before;
  const streams = job.boolParam(...stream) ?? job.draft.bool(stream[1]) ?? false;
  const file = job.param(command, alias);
  let travels = wanted;
  if (file !== undefined || !job.draft.has(attribute)) {
    if (file === undefined || file === NOTHING) travels = false;
    else if (job.kind.universe === UNIVERSE.vm) {
      throw job.fault(
        command,
        'You cannot use input, ouput, and error parameters in the submit description file for vm universe',
      );
    } else if (command === 'input' && wanted) checkInput(job, file, 'input');
    job.setString(attribute, file ?? NOTHING);
  }
  if (!travels) job.setBool(transfer[1], false);
  else {
    job.setBool(stream[1], streams);
    if (wanted !== before) job.setBool(transfer[1], wanted);
  }
}

export const streams: readonly Step[] = STREAMS.map((stream) => ({
  name: stream.command,
  run: (job) => setStream(job, stream),
}));
