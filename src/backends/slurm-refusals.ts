import type { Refusal } from '../site/contract.ts';

/** The controller was not reached, or it said so itself: nothing was submitted, and it may go another time. */
const LATER =
  /MaxSubmitJob|QOSMaxSubmit|AssocMaxSubmit|accounting\/QOS policy|temporarily unable to accept|connect failure|Connection refused|MaxJobCount|Protocol authentication error|Munge encode failed|Resource temporarily unavailable|try again later|Disk quota exceeded|No space left|Required partition not available/i;
/** There are as many jobs as it takes of us, or of all. */
const FULL = /MaxSubmitJob|QOSMaxSubmit|AssocMaxSubmit|accounting\/QOS policy|MaxJobCount|temporarily unable/i;
/** The job itself is beyond a limit, whatever else the sentence says. */
const TOO_BIG = /(Max|Min)[A-Za-z]*PerJob|MaxWall|TimeLimit\b/;
/** sbatch asked, and has no answer: the job may be there. */
const UNCLEAR =
  /timed out|Zero Bytes were transmitted|Unexpected message|Communication connection failure|Transport endpoint/i;
/** sbatch's own words for an answer that it has. */
const ANSWERED =
  /Batch job submission failed: |Unable to open file|invalid|Invalid|unrecognized option|requires an argument/;

/** What a failed sbatch means. Its status: 1 from the controller, 255 from its options, 124 and 137 our time-out. */
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

/** The last line says it; the ones before may name the limit. */
function sentence(message: string): string {
  const lines = message
    .split('\n')
    .map((line) => line.replace(/^sbatch: (error: )?/, '').trim())
    .filter((line) => line !== '');
  return lines.length === 0 ? 'sbatch failed without a word' : [...new Set(lines)].slice(-3).join('; ');
}
