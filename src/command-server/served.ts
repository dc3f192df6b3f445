/** Commands that last as long as a job, or speak with the terminal. */
const LASTING: ReadonlySet<string> = new Set([
  'srun',
  'condor_wait',
  'condor_tail',
  'condor_ssh_to_job',
  'condor_submit_dag',
]);

/** With one of these words, a command may last. */
const WAITS = /^--?(?:wait|watch|iterate|interactive|interval)(?:=|$)|^-[A-Za-z]*[WiI]/;

/** Words that ask for help. oclif prints it to the output that the server's own process began with. */
const HELP = /^(?:--?help|-h)$/;

/** Whether the command server answers these words of the command line: only a command that is over soon. */
export function isServed(words: readonly string[]): boolean {
  const [first, second, command = '', ...rest] = words;
  if (first !== 'compat' || second !== 'speak' || LASTING.has(command)) return false;
  // HTCondor's options have one dash and a word.
  const condor = command.startsWith('condor_');
  const elsewhere = (word: string) => HELP.test(word) || /^--?(?:watch|interactive|i|wait)$/.test(word);
  return !rest.some((word) => (condor ? elsewhere(word) : WAITS.test(word)));
}

/** Thrown in the command server by a command that only its caller's own process can run; nothing has been done then. */
export class Elsewhere extends Error {}
