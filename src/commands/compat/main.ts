import { isServed } from '../../command-server/served.ts';
import { GryphusError } from '../../errors.ts';
import { ownStreams } from '../streams.ts';
import { speak } from './run.ts';

/**
 * A command of another system, from its name and words to the exit status, without our own command line: tools call
 * these commands in loops, and oclif would take longer than most of them do.
 */
export async function main([command = '', ...words]: readonly string[]): Promise<void> {
  ownStreams();
  try {
    await speak(command, words);
  } catch (error) {
    const { errorText } = await import('../show/error.ts');
    process.stderr.write(errorText(error, process.env['GRYPHUS_DEBUG'] !== undefined));
    process.exitCode = error instanceof GryphusError ? error.exitCode : 70;
  }
  if (isServed(['compat', 'speak', command, ...words]))
    await (await import('../../command-server/called-often.ts')).startIfOften();
}
