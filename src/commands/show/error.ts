import { asError, GryphusError } from '../../errors.ts';
import { paint } from './colour.ts';

/** The text for stderr: one line `gryphus: …`, then what to do about it. */
export function errorText(error: unknown, debug: boolean, colours = false): string {
  const name = paint('gryphus:', 'red', colours);
  if (error instanceof GryphusError) {
    const lines = [`${name} ${error.message}`, ...error.suggestions.map((one) => `  → ${one}`)];
    return `${lines.join('\n')}\n${debug ? `${error.stack ?? ''}\n` : ''}`;
  }
  const thrown = asError(error);
  const detail = debug
    ? (thrown.stack ?? thrown.message)
    : `${thrown.message}\n  → Run it again with GRYPHUS_DEBUG=1 for the details, and report them.`;
  return `${name} internal error: ${detail}\n`;
}
