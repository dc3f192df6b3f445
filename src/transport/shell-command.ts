import { GryphusError } from '../errors.ts';
import { shellQuote } from '../util/shell-quote.ts';

/** Linux limits an argument of a process to 128 KiB (MAX_ARG_STRLEN); what surrounds ours is short. */
const LONGEST = 120_000;

/**
 * `exec`: the command replaces our shell, and the far side reports how it ended, including signals. `wait`: our shell
 * stays and reports a signal N as 128 + N, for connections that would lose signals.
 */
export type CommandForm = 'exec' | 'wait';

/** Start files may leave a PATH without the system's programs, or none. */
const FIND_PROGRAMS =
  'case :${PATH-}: in *:/bin:* | *:/usr/bin:*) ;; *) PATH=${PATH:+$PATH:}/usr/local/bin:/usr/bin:/bin; export PATH ;; esac';

/**
 * Wraps a POSIX shell command so that every login shell starts it alike. sh, csh, tcsh, fish and zsh agree on plain
 * words in single quotes as long as these contain no quote, `!` (csh's history), newline or doubled backslash. Anything
 * else is therefore sent as octal escapes that printf decodes at the far side.
 *
 * The command first prints `mark`, its process id and a newline on stdout, and `mark` and a newline on stderr; earlier
 * output comes from the login shell's start files. It leads its own process group if sshd made one.
 */
export function loginShellCommand(command: string, mark: string, form: CommandForm): string {
  if (command.includes('\0')) throw new GryphusError('bad-input', 'A command cannot contain a NUL byte.');
  const script = `${FIND_PROGRAMS}; echo ${mark} $$; echo ${mark} >&2; ${form === 'exec' ? 'exec ' : ''}/bin/sh -c ${shellQuote(command)}${form === 'exec' ? '' : '; exit $?'}`;
  const encoded = encode(script);
  if (encoded.length > LONGEST) {
    throw new GryphusError('bad-input', `A command of ${encoded.length} bytes is too long for a command line.`, {
      suggestions: ['Send it through standard input.'],
    });
  }
  return `exec /bin/sh -c 'eval "$(printf %b "$1")"' sh '${encoded}'`;
}

/** Encodes all but the bytes that are literal within single quotes in any shell, as `\0ooo` for printf's %b. */
function encode(text: string): string {
  let out = '';
  for (const byte of Buffer.from(text)) {
    const char = String.fromCharCode(byte);
    out += /[ -~]/.test(char) && !/['\\!]/.test(char) ? char : `\\0${byte.toString(8).padStart(3, '0')}`;
  }
  return out;
}
