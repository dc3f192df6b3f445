import type { Refusal } from '../site/contract.ts';

/** The controller was not reached, or said so itself: nothing was submitted, and a retry may succeed. */
const LATER =
  /MaxSubmitJob|QOSMaxSubmit|AssocMaxSubmit|accounting\/QOS policy|temporarily unable to accept|connect failure|Connection refused|MaxJobCount|Protocol authentication error|Munge encode failed|Resource temporarily unavailable|try again later|Disk quota exceeded|No space left|Required (partition|node) not available|reservation not usable now|try again|nodes are busy|maintenance reservation|standby mode|submissions disabled|presently disabled|writing script\/environment|generating job credential|Unable to connect to database|Incompatible versions of client and server/i;
/** The site takes no more jobs for now, from us or from anyone. */
const FULL = /MaxSubmitJob|QOSMaxSubmit|AssocMaxSubmit|accounting\/QOS policy|MaxJobCount|temporarily unable/i;
/** The job itself exceeds a limit, whatever else the message says. */
const TOO_BIG = /(Max|Min)[A-Za-z]*PerJob|MaxWall|TimeLimit\b/;
/** sbatch asked but got no answer: the job may be there. */
const UNCLEAR =
  /timed out|Zero Bytes were transmitted|Unexpected message|Communication (connection|shutdown) failure|Transport endpoint|\((send|receive|shutdown) failure\)|Message (send|receive) failure|message length|zero length message|Failed to send entire message/i;
/** sbatch's words when it did get an answer. */
const ANSWERED =
  /Batch job submission failed: |Unable to open file|invalid|Invalid|unrecognized option|requires an argument/;

/** What a failed sbatch means. Status: 1 from the controller, 255 from its options, 124 and 137 from our time-out. */
export function slurmRefusal(status: number, text: string): Refusal | 'unclear' {
  const message = sentence(text);
  if (status === 127) return refuse('never', 'site-refused', `sbatch was not found at the site: ${message}`);
  if (UNCLEAR.test(text) || status === 124 || status === 137) return 'unclear';
  if (LATER.test(text) && !TOO_BIG.test(text)) {
    return refuse('later', FULL.test(text) ? 'site-full' : 'site-busy', message);
  }
  if (status === 255 || TOO_BIG.test(text) || ANSWERED.test(text)) return refuse('never', 'site-refused', message);
  return 'unclear';
}

function refuse(kind: 'never' | 'later', code: Refusal['code'], message: string): Refusal {
  return { kind, code, message };
}

/** The last line is the error; the lines before may name the limit. */
function sentence(message: string): string {
  const lines = message
    .split('\n')
    .map((line) => line.replace(/^sbatch: (error: )?/, '').trim())
    .filter((line) => line !== '');
  return lines.length === 0 ? 'sbatch failed without a message' : [...new Set(lines)].slice(-3).join('; ');
}
